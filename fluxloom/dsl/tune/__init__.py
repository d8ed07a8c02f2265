"""Searches for the fastest schedule of a loop on its own data.

Read `knobs` (what may change, as `fluxloom.dsl.plan` allows it) first, then `runs` (candidates, built once) and
`search`. `online` tunes while a loop does useful work. What is found is kept by `fluxloom.dsl.plan.tuning`.
"""
