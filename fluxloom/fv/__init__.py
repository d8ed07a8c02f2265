"""Finite volumes: formulas and kernels, one scheme a file."""
