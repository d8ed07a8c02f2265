"""Flow on a staggered grid as scripts and cases make it.

Read `flow` first, then `surface`, its sides.
"""
