"""Checks of compressible flow against exact and published values.

Read `checks` first.
"""
