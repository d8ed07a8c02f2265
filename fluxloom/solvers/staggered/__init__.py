"""Incompressible flow on a staggered grid, with a direct solver of the pressure.

Read `flow` and `stages` first, then `fields`, `given` (boundaries in space and time), `forces`, `probes`.
"""
