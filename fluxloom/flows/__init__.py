"""Solvers with their states as a run sees them: `fluxloom.run.flow.Flow` says what that is.

Read `airfoil` first, the shortest room. In each, `flow` is the class that scripts and cases build and `surface` what it
does on its patches. `volumes` and `points` make domains of meshes, `flow_in_time` chooses steps, `flow_plan` has
lengths and limits.
"""
