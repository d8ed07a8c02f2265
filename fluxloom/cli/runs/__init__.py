"""A run of a case, from what is asked to what is left of it.

Read `request` (what is asked) and `job` (the run) first, then `startup` (what is measured before the first step) and
`summary` (what is said at the end).
"""
