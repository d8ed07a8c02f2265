"""How populations travel, and where one finds them between two steps.

Read `schemes` and `steps` (the kernel of a step, a scheme each) first, then `stored` (what is kept of a population),
`memory` and `space` (on all cells or on a list), `steps_moments`, `output`.
"""
