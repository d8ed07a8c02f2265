"""Models and loops that are compared with each other, and are part of no solver.

`face_loops` are ten loops over faces in every way in which they can run, `traffic` and `fem_traffic` the bytes that
products move, `hybrid` the shares of unlike ranks, `wing_sections` pressures along a wing.
"""
