"""Loops over unstructured meshes: what is declared, how it is planned, and how it runs on devices and ranks.

Read in the order of a program: `context` (where everything is declared), `declare` (sets, maps, dats), `plan` (races,
costs, tables), `run` (loops and chains), `ranks` (halos and messages). By need: `checkpoint`, `tiles`, `tune`. A room
imports those before it alone.
"""
