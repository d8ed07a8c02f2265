"""Meshes that are made, not read.

Read `boxes` first, then by shape: `airfoil`, `naca`, `cascade`, `cylinder`; `extrude`, `layers`, `refine` and `cluster`
change a mesh. Those by Gmsh begin with `gmsh_shapes`.
"""
