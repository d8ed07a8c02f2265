"""Collision operators: what a cell does to the populations that have arrived.

Read `operators` (what a user chooses) and `rates` (relaxation) first, then the kernels: `pairs` (BGK, TRT), `orders`
(MRT, regularised), `central` and `cumulant`.
"""
