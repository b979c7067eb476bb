"""Gravity by a tree: an octree, Cartesian multipoles, and an error that the user names; see README.md."""
