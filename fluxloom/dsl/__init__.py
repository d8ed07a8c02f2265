"""Loops over unstructured meshes: what is declared, how it is planned, and how it runs on devices and ranks.

Read in the order of a program: `context`, `sets`, `maps` and `dats` (what is declared), `bind` and `loop` (a kernel
over a set), `chain` (loops replayed as one), `schedule`, `cost` and `plan` (how they run). Then by need: `fusion` and
`tiling` (chains), `decompose*`, `exchange*` (ranks), `checkpoint*` and `state` (restarts), `tune*` (choices measured).
"""
