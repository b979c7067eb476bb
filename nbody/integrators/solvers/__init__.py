"""Solvers are compiled loops with their own pair sums: block Hermite, maps of planets, Gauss-Radau, ensembles."""
