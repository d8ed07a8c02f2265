"""The verbs of the laboratory, one file each; `pyproject.toml` declares them as entry points."""
