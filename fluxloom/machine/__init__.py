"""The machine that a run is on: processors, GPUs, drivers, ranks, and what is missing.

Read `system` (processor, caches, memory) first, then `gpus` with `drivers` (asked in a process of their own), `ranks`
(starting them, what each computes on), `probe` (the findings of ``fluxloom doctor``).
"""
