"""Elements and their degrees of freedom.

Read `elements`, `quadrature` and `cell_map` (reference cells) first, then `dofs` and `cell_dofs` (numbers),
`dof_numbers` (edges, faces, ranks), `cell_entries` (places in a matrix), `sides` (boundaries).
"""
