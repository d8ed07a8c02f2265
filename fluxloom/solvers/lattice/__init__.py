"""Lattice Boltzmann flow in a box with walls, bodies, inlets.

Read `flow` and `steps` first, then `sides` (conditions), `start`, `checks` (what is refused), `observables` (moments
and sums), `devices` (several devices of one process), `cost` (bytes a step).
"""
