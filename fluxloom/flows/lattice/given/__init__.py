"""What a user describes of a lattice Boltzmann flow, in physical units, x first.

Read `units` first, then `numerics`, `sides`, `shapes` and `bodies`, `immersed` and `particles`, `force`, `start`.
"""
