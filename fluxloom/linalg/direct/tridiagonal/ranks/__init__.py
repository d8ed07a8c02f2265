"""Tridiagonal systems whose rows are divided over ranks.

Read `solver` first, then `ends` (a rank's rows condensed to two), `messages` (how those come together), `text` (the
functions).
"""
