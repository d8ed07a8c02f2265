"""Krylov methods, made of chains of loops.

Read `method` (what they have in common) and `conjugate_gradient` first, then `bicgstab`, `gmres`, `restart` (the
residual of the solution itself). `three_kernels` is the algebra of three kernels, `counted_gradient` a solver made of
them.
"""
