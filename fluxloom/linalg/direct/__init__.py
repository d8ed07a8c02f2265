"""Direct solvers: their calls stand between loops.

Read `calls` first (a direct solver inside a chain), then by problem: `tridiagonal` (many systems), `transforms`,
`poisson` (boxes), `separable` (planes), `extruded` (any plane mesh, periodic along the third direction).
"""
