"""Incompressible flow on a staggered grid.

Read `grid` (where faces and cells are) and `kernels` first, then `sides` and `transfer` (from one grid to another).
"""
