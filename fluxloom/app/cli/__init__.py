"""The verbs of the command line, a file each; `main` finds them, those of other packages too.

Read `main` and `run` first. A verb turns words into a request, calls the rooms below, and prints what comes back.
"""
