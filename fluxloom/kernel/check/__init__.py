"""Tests of kernels: what may not happen in one, found when it is read, or when it runs in the checking mode.

Read `checks` first, then `tests` (each operation that can fail), `values` and `explain` (what is said), `written`
(writes on every path).
"""
