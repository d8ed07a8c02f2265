"""What is wrong with a mesh, and what is not wrong but poor.

Read `sound` (what every reader refuses) and `check` (the same as a report, located) first, then `crossings`, `surface`,
`orient` (cells turned the right way round), `measures` (skewness and the like).
"""
