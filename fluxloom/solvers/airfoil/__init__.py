"""The Airfoil benchmark: inviscid flow around NACA 0012.

Read `flow` first, then `forces` and `probes`.
"""
