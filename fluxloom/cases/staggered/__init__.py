"""The case of flow on a staggered grid.

Read `tables` (its keys) first, then `case`.
"""
