"""Finite elements: basis functions, rules of quadrature, numbering and kernels, one scheme a file.

Read `point_mesh` (simplices, edges and boundaries of points) first, then the kernels of flow on edges (`edge_*`); for
elements of any order `elements`, `dofs`, `global_matrix` and `poisson`.
"""
