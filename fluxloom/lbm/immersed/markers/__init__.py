"""Markers on the surface of bodies, and the values that go between them and cells.

Read `places` and `deltas` first, then `spreading` and `kernels`, `rows` (markers at rest) and `scatter` (markers that
move), `messages`, `data`, `plain` (NumPy).
"""
