"""Incompressible flow as a portable algebra: a step of sparse products, sums of vectors and dot products.

Read `step` first, then `matrices` (scalar matrices of a flow) and `corrections`.
"""
