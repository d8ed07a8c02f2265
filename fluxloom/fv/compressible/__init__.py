"""The compressible Navier-Stokes equations in finite volumes.

Read `gas`, `fluxes` (inviscid) and `kernels` (the residual, the step) first, then `gradients`, `viscous_flux`,
`spalart_allmaras`, `boundary` with `boundary_states` and `patches`, `positivity`. For steady flow `implicit`,
`newton_kernels`, `multigrid`, `mixing_kernels`.
"""
