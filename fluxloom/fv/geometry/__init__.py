"""Control volumes of any mesh: cells, boundary elements, the faces between them.

Read `volumes` and `control_volumes` first, then `cell_faces` (what loops over the faces of a cell need),
`agglomeration` and `coarse_volumes` (levels of multigrid), `sectors` and `symmetry_planes`.
"""
