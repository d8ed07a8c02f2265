"""Incompressible flow in collocated finite volumes: operators, boundaries, scalars, eddy viscosity.

Read `operators` and `kernels` (the fractional step) first, then `boundary` and `matrices`, `projection_schemes` (time),
`linear_operators` (exact on oblique meshes), `scalar_transport` with `scalar_boundary`, `eddy_viscosity`,
`wall_forces`.
"""
