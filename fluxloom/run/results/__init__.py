"""The results of a run: whose the folder is, what may be written into it, and what became of it.

Read `lock` (one run a folder), `earlier` (what lies there, and whether this run goes on from it), `folder` (files are
written beside and renamed; one that fails is lost alone).
"""
