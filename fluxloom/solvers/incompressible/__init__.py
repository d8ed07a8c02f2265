"""Incompressible flow in collocated finite volumes, by a fractional step.

Read `flow` and `types` first, then `pressure`, `corrections` (exact on oblique meshes), `given` and `outlets`
(boundaries), `scalar` with `buoyancy`, `viscosity`, `forces`, `probes`, `energy`.
"""
