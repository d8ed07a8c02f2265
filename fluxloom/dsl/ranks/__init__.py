"""Sets that are divided over ranks: who owns what, which halos there are, when they are exchanged.

Read `decompose` first, with `decompose_owner` (owners) and `decompose_halo` (what is stored of neighbours), then
`exchange` (messages), `halo_loops` (loops with halos) and `task` (sequences of them).
"""
