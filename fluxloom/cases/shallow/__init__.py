"""The case of shallow water.

Read `tables` (its keys) first, then `case`.
"""
