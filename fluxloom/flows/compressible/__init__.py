"""Compressible flow as scripts and cases make it.

Read `flow` first, then `given` (boundary conditions, made whole and checked) and `steps` (in time or towards steady
flow).
"""
