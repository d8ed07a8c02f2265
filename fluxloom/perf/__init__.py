"""What is fast, found by rules and by measuring: the roofline, fair timing, searches. They know nothing of loops.

Read `model` (how fast memory and arithmetic let a loop be) and `stopwatch` (how candidates are timed) first, then
`tuner` and `screening` (searches), `ragged` (rows of ragged loops), `shares` (parts of unlike processes).
"""
