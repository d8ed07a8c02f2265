"""How a loop may run, what that costs, and the tables that it needs.

Read `bind` (a kernel with its arguments, checked) first, then `races` (which strategies are legal), `cost` and
`grouping` (which one is taken), `plan` and `work` (tables for processors and GPUs), `executable` (one call). `tuning`
is the file of measured schedules.
"""
