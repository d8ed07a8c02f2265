"""Flow, transport and diffusion on linear triangles and tetrahedra, edge by edge.

Read `flow` and `loops` (a step) first, then `boundary`, `subscales`, `outlets`, `stages` (Runge-Kutta); `transport`
with `transport_given`; `diffusion` (implicit).
"""
