"""Poisson's equation on an extruded, periodic mesh: transforms along the extrusion, a plane system a frequency.

Read `solver` first, then `frequencies`, `operator` and `plane` (the systems), `batch` (those solved together),
`columns` (values as rows of planes), `teams` (ranks), `tuning` (what is measured).
"""
