"""Lattice Boltzmann flow in physical units as scripts and cases make it.

Read `flow` and `given` (what a user describes) first, then `fields`, `sums` and `surface` (what is measured),
`snapshots` (on the way to the host), `files` and `pictures`, `ranks`.
"""
