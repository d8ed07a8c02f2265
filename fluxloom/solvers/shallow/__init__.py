"""Shallow water: tsunamis, dam breaks, run-up.

Read `flow` first, then `probes`.
"""
