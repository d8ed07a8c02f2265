"""Shallow water as scripts and cases make it.

Read `flow` first, then `openings` (what flows through patches), `watch` (what guards look at), `pictures`.
"""
