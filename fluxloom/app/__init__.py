"""Case files and the command line: TOML in, a flow with its monitors out, which `fluxloom.run` runs.

Read `application` (what a solver gives to the command line) and `case` (how a file is checked) first, then
`strategy_tables` (tables made of dataclasses), `cases` (a solver's tables and how they become a flow), `job` (a run
from what is asked to what is left of it), `cli` (the verbs).
"""
