"""Solvers: equations, schemes and loops of a flow, with what it needs to step. How a run sees it: `fluxloom.flows`.

Read a room from its `flow` on: `airfoil` first, the shortest, then `compressible`, `incompressible` (`algebraic` is its
form of three kernels), `staggered`, `edges`, `lattice`, `shallow`. `flow_spaces`, `flow_signals` and `probe_records`
are shared.
"""
