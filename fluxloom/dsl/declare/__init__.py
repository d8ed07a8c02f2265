"""What a program declares: sets, maps, dats, globals, and the schedule that a loop is asked to follow.

Read `runtime` (what all of them share) and `sets` first, then `maps`, `slots` and `ragged` (links between sets), `dats`
with `incoming` (values), `schedule`. `parts`, `boxes`, `links` and `transports` say what a rank has and how ranks reach
each other.
"""
