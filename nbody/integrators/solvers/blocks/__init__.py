"""Hermite schemes with individual block time steps: each body has its own step, a power of two times a common unit.

``formulas.py`` has the schemes, one number or one pair at a time, for both kinds of processor; ``cpu.py`` and ``gpu.py``
have the loops; ``scheme.py`` has the integrators.
"""
