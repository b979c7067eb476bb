"""The force as a product of matrices, computed by the rungs of :mod:`nbody.linalg`."""
