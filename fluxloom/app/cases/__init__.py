"""The solvers of case files: `NAME_tables` has the tables of one, `NAME` makes a flow and its monitors of them.

Read `diffusion` first, the shortest. `flow_mesh`, `flow_monitors`, `flow_start`, `start_tables` and `wall_motion` have
what all share. Numerics do not belong here: a table becomes a value, and the constructor of the flow takes it.
"""
