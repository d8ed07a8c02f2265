"""The case of compressible flow.

Read `tables` (its keys) and `case` first, then `setup` (from tables to values) and `outlets` (advice on them).
"""
