"""Solvers with their states as a run sees them, a file each: `fluxloom.run.flow.Flow` says what that is.

Read `diffusion` or `airfoil` first, the shortest. `volumes` and `points` make domains of meshes, `flow_in_time` chooses
steps, `flow_plan` has lengths and limits; `NAME_surface` is what a flow does on its patches.
"""
