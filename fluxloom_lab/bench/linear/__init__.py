"""Measurements of linear algebra: products, Krylov methods, Poisson solvers, finite elements.

Read `spmv` first.
"""
