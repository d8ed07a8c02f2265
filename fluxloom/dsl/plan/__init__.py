"""How a loop may run, what that costs, and the tables that it needs.

Read `bind` (a kernel with its arguments, checked) first, then `races` (which strategies are legal), `cost` (which one
is taken), `plan` and `work` (tables for processors and GPUs), `executable` (one call). `block`, `lanes`, `pairs`,
`registers`, `sites`, `split`, `stage` and `stream` are the knobs of a schedule: when each is allowed, what it costs,
what a search tries. `tuning` is the file of measured schedules.
"""
