"""Checks of lattice Boltzmann flow against exact and published values.

Read `checks` first.
"""
