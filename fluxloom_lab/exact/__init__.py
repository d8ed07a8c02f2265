"""Exact solutions and oracles: what is true, computed without a loop of the package.

Begin with `compressible_exact`, the door to gas dynamics (`riemann`, `nozzle`, `ringleb`, `viscous_exact`);
`manufactured` makes sources for made-up flows, `shallow_exact` has basins and dams, `cell_means` integrates over cells.
"""
