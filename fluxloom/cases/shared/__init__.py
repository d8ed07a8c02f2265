"""Tables and monitors that several solvers share.

Read `mesh` (the table ``[mesh]``) and `monitors` (history, probes, averages, files) first, then `start`,
`start_tables`, `wall_motion`, `gmsh_tables`.
"""
