"""A flow is run here, and what comes of it is kept.

Read `flow` (what a solver says of itself) and `monitor` (what looks at it) first, then `march` (the loop over steps),
`guards` (what ends it), `checkpoint` (how it goes on), `results` (where files go).
"""
