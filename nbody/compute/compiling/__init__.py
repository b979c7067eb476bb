"""How kernels are compiled, kept on disk, and compiled several at a time."""
