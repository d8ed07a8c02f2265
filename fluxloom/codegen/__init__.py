"""Source text for loops: a specification goes in, a unit of C, CUDA or OpenCL comes out. Nothing is compiled here.

Read `language` (the specification, the printer, the dialects) first, then `packs` (vectors of elements, for
processors), `items` (work items, for GPUs), `grids` (lattices), `unit` (a whole text). `tiled`, `exchange` and
`primitive` (with `bodies`, pieces of what it surrounds) write what is no plain loop.
"""
