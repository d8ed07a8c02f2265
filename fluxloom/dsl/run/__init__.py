"""Loops and chains as they run.

Read `loop` (a kernel over a set) and `chain` (a sequence, replayed as one) first, then `fusion` (which loops run
together) and `replay` (the fused form). `interpret` is the reference device, `checking` the mode that raises where
Python would, `primitive` what is no loop.
"""
