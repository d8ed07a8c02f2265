"""The verbs of the command line, a file each.

Read `run` first, then `check`, `mesh`, `plot`, `tune`, `doctor`, `devices`, `codegen`.
"""
