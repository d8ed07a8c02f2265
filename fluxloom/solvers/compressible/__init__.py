"""Compressible flow on unstructured meshes.

Read `flow` and `scheme` first, then `residual` (the loops of one), `positivity`, `surface` (patches and forces).
Towards steady flow: `cycles`, `implicit` with `newton_system` and `sweeps`, `multigrid` with `levels` and `smoothers`,
`mixing`, `limiter_freezing`.
"""
