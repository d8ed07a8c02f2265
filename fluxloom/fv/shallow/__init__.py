"""The shallow-water equations in finite volumes.

Read `kernels` (HLL flux, hydrostatic reconstruction, the step) first, then `gradients`, `boundary` with
`boundary_states`, `scheme` (what is chosen), `geometry`, `places` (cells that messages name).
"""
