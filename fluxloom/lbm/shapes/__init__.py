"""Shapes of bodies: which points are inside, and where a segment meets the surface.

Read `shapes` first, then `sets` (shapes made of others), `surface` (triangles), `files` (STL and other files).
"""
