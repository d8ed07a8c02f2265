"""Loops over lattices: arithmetic instead of tables.

Read `grid` and `site` first, then `kernels` (work items), `sites` (some sites an item), `lists` (some elements),
`stream` with `stream_places` and `stream_helpers` (whole lines past the caches).
"""
