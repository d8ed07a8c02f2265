"""Incompressible flow in finite volumes as scripts and cases make it.

Read `flow` first, then `surface` (patches) and `velocity_checks` (whether given velocities fit).
"""
