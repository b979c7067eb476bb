"""Numba's simulator, which runs kernels on the CPU as Python code: what it lacks, fast threads, and records of accesses."""
