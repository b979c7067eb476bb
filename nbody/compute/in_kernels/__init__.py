"""What kernels call: intrinsics, unrolled loops, threads and vectors of a CPU, Morton keys."""
