"""What a run needs to go on, and the file that holds it.

Read `state` (all that the next step reads; `memory` finds it) first, then for scripts without a state of their own
`checkpoint`, `rules` and `place` (the least that has to be kept), `save` and `file`.
"""
