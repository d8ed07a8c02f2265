"""What looks at flows while they run, a file each: `fluxloom.run.monitor.Monitor` says what that is.

Read `plateau` first, the shortest, then `point_samples` (probes and lines), `forces` and `walls` (surfaces),
`averages`, `spectrum`, `film`.
"""
