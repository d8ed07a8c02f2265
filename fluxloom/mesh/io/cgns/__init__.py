"""CGNS files.

Read `reader` first, then `tree` (nodes, from `hdf5` or `adf`), `zone` with `unstructured` and `structured`, `sections`
and `polyhedra` (cells), `boundary` (patches), `join` (zones that meet).
"""
