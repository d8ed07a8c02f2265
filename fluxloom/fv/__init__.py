"""Finite volumes: formulas and kernels, one scheme a file.

Read `volumes` (control volumes, their faces and operators) first, then by flow: `compressible_*` with `gas`,
`free_stream` and `limiters`; `incompressible*`, `linear_*` and `flow_*`; `shallow_*`. `given`: what boundaries share.
"""
