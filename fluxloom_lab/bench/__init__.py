"""Benchmarks: options in, one record out; one file or a few for each name of ``fluxloom bench``.

Begin with `base` (options, record) and `registry` (the names); `rounds` is how all of them time. `airfoil` is the
simplest. Others add one through the entry points ``fluxloom.benches``.
"""
