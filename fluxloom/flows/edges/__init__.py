"""Flow, transport and diffusion on simplices as scripts and cases make them.

Read `diffusion` first, the shortest, then `flow` with `surface`, and `transport`.
"""
