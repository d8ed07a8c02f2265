"""The cells of a lattice: the box, which of them are fluid, which links a wall cuts.

Read `box` and `labels` first, then `links` and `links_cut` (walls), `lists` (fluid cells alone), `division` and
`windows` (on ranks).
"""
