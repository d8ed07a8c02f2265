"""What readers and writers share.

Read `collect` (from what a file holds to a mesh) first; `scan` and `text` read and write tables of numbers as text,
compiled where possible.
"""
