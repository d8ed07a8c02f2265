"""A mesh in a context: its sets, maps and dats on one rank, or the part that each of several ranks has.

Read `bind` (sets and maps of a mesh) and `distribute` (from slices of files to parts) first, then `reading` and
`writing`, `part` (what a rank has), `renumber` (locality), `wall_distance`.
"""
