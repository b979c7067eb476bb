"""The ladder's suite: matrix products, rung by rung, beside cuBLAS."""
