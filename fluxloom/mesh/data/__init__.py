"""What a mesh is as arrays.

Read `mesh` (points, blocks of cells, polyhedra, patches) and `elements` (types of cells) first, then `ragged` (rows of
any length), `whole` (what has to hold before anything is derived).
"""
