"""Lattice Boltzmann: lattices, collisions, streaming, boundaries and bodies, as kernels and tables of cells.

Read `lattices` and `moments` first, then `collisions`, `streaming` (one pass a step, and where populations are),
`cells` (the box, fluid cells, links), `boundaries` (sides and bodies), `immersed` (bodies that move), `shapes`.
`fluxloom.solvers.lattice.flow` puts them together.
"""
