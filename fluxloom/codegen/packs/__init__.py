"""Loops for processors: vectors of elements.

Read `pack` (load, compute, combine, store) and `wrapper` (the driver around packs) first, then `rows` (vector loads),
`commit` (increments), `abreast` (neighbouring rows), `contributions`.
"""
