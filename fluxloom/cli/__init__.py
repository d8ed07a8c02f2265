"""The command line: words become a request, which the rooms below carry out.

Read `main` and `commands` (how verbs are found, those of other packages too) first, then `verbs`, a file each, and
`runs` (a run from what is asked to what is left of it). `console` has what verbs share.
"""
