"""Flow and transport on the edges of linear triangles and tetrahedra.

Read `point_mesh` and `operators` (constant operators of edges) first, then `flow` and `transport`, `subscales`,
`bounded` (bounded transport), `limit` (the largest step).
"""
