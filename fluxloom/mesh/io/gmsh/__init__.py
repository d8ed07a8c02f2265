"""Gmsh's MSH 2.2 and 4.1, text and binary.

Read `msh` first, then `raw` (what a file holds), `text` and `binary` (rows of numbers).
"""
