"""Direct summation: every pair, on a CPU and on a GPU, one idea in each file."""
