"""Loops for processors: vectors of elements.

Read `pack` (load, compute, combine, store) and `wrapper` (the driver around packs) first, then `rows` (vector loads),
`commit` (increments), `row_packs` (neighbouring rows), `contributions`.
"""
