"""Cartesian multipoles to any order: the text of their arithmetic, written by a program for the CPU and the GPU."""
