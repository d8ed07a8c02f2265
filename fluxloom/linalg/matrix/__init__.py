"""Sparse matrices and their products.

Read `matrix` and `products` first, then `distribute` (rows on ranks), `layouts` and `reorder` (what makes products
fast), `rings` (several products with one exchange).
"""
