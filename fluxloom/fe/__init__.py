"""Finite elements: basis functions, rules of quadrature, numbering and kernels, one scheme a file."""
