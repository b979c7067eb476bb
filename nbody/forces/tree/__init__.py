"""Gravity by a tree: an octree of the bodies, Cartesian multipole expansions, and an error that the user names."""
