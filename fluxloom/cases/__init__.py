"""Case files: TOML in, a flow with its monitors out, which `fluxloom.run` runs.

Read `files` (how a file is read and checked) first, then `diffusion`, the shortest solver, and `shared` (tables that
all have). In the room of a solver `tables` are its keys and `case` makes a flow of them. Numerics do not belong here.
"""
