"""How a case file is read, checked and built.

Read `case` (the checked model) and `application` (what a solver gives) first, then `loading` (from a file to a flow),
`strategy_tables` (tables made of dataclasses), `errors` (file, line, key), `keys` (the lists of the docs).
"""
