"""Gradients in cells and their limiters.

Read `limiters` first, then `node_gradients` (gradients that see all neighbours through the nodes) and `plane_gradient`.
Each solver has its loop over least squares in its own room.
"""
