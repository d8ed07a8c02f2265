"""Finite elements: basis functions, quadrature, numbering and kernels, one scheme a file.

Read `cells` (elements and degrees of freedom) and `spaces` first, then `poisson` with `poisson_kernels`, `diffusion`,
`global_matrix`. `edges` is flow and transport on the edges of simplices.
"""
