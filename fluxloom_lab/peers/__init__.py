"""Programs and libraries of others, beside which ours are measured: found, fed, run, and read; none is a dependency.

`programs` starts and stops them; then one file or a few a peer (`petsc`, `kratos`, `openfoam`, lbmpy and XLB in
`lbm_peers`), and libraries by what they are compared in (`spmv_peers`, `krylov_peers`, `tridiagonal_peers` ...).
"""
