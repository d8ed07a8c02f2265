"""Finite volumes: formulas and kernels, one scheme a file.

Read `geometry` (control volumes, faces, operators) and `gradients` first, then by equations: `compressible`,
`incompressible`, `shallow`, `staggered`. `given` and `wall_forces` of the rooms say what boundaries are given and bear;
`time_schemes` is shared.
"""
