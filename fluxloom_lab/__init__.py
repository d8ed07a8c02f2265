"""The laboratory of Fluxloom: what measures and checks the package, and is imported by none of it.

Its verbs ``bench`` and ``verify`` are entry points of the group ``fluxloom.commands``. In the order of reading:
`problems` (flows, meshes, bodies that several of them use), `formats` and `strategies` (of published systems, which
no record has as the fastest: they come in by the doors for other packages), `exact` (solutions in closed form, and
oracles), `studies` (models and loops that are compared with each other, in no solver), `bench` and `verify` (one file
or a few for each name), `peers` (programs and libraries of others beside which they are measured), `cli` (the verbs).
"""
