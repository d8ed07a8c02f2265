"""Chains that run tile by tile, so that what a tile touches stays in the cache from loop to loop.

Read `tiling` first, then `chain` (a chain as tiles see it), `owners` (which tile has which element), `run` (compiled),
`tune` (the size of tiles by measuring). `lazy` collects loops until somebody wants a result.
"""
