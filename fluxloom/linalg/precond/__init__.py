"""Preconditioners, a file each.

Read `preconditioning` (how they are given and made) and `jacobi` first, then `ssor`, `chebyshev`, `approximate_inverse`
with `inverse_factor`, `multigrid` with `multigrid_setup`.
"""
