"""Verifications: numbers beside exact and published ones; one file or a few for each name of ``fluxloom verify``.

Begin with `base` (a check, the options) and `registry` (the names). Tables of published numbers stand beside what
compares with them. Others add one through the entry points ``fluxloom.verifications``.
"""
