"""Measurements of lattice Boltzmann flow and of immersed boundaries.

Read `lattice` and `lbm_measure` first.
"""
