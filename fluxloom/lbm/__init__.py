"""Lattice Boltzmann: lattices, collisions, streaming, boundaries and bodies, as kernels and tables of cells.

Read `lattices` and `moments` first, then `collisions` (the operators; `collisions_*` their kernels), `streaming` and
`steps` (one pass a step), `box`, `cells` and `space` (where populations are), `boundaries` (sides and bodies),
`immersed` (bodies that move), `shapes` and `surface` (geometry). `fluxloom.solvers.lattice` puts them together.
"""
