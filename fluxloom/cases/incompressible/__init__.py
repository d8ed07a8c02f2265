"""The case of incompressible flow in finite volumes.

Read `tables` (its keys) and `case` first, then `choices` (velocities), `scalars` with `extras`, `observers`.
"""
