"""What is given in space and time: numbers, formulas, tables, functions; on a set they are kept up to date by loops.

Read `value` first (what a user may write), then `expressions` (the language of formulas) and `kernel_text`
(what loops make of them), `tables` (series, profiles, rasters and their files), `fluctuation` (synthetic turbulence),
and `given_on` (values on a set). Solvers hold a `GivenOn`; nothing here knows one of them.
"""
