"""Source text for loops: a specification goes in, a unit of C, CUDA or OpenCL comes out. Nothing is compiled here.

Read `spec` (what of a loop its text depends on) and `group` (loops of one function) first, then `unit` (a whole text),
`dialect` and `printer` (how the languages differ). `pack` and `wrapper` write vectors of elements for processors,
`item`, `kernels`, `pairs` and `teams` work items for GPUs, `grid*` loops over lattices, `tiled` chains tile by tile.
"""
