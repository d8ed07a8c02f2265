"""Solvers: equations, schemes and loops of a flow, with what it needs to step. How a run sees it: `fluxloom.flows`.

Read a family (a prefix) from its first file on: `compressible`, `incompressible` (parts: `flow_*`), `staggered`,
`edge_flow` and `edge_transport` (parts: `edge_*`), `diffusion`, `lattice`, `shallow_water`, `airfoil`. What they share:
`flow_spaces` (cells and faces as sets), `probe_records` (samples at points).
"""
