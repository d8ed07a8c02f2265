"""The case of lattice Boltzmann flow.

Read `tables` (its keys) and `case` first, then `body_tables` and `bodies`, `output_tables`, `monitors`, `advice` (what
may spoil a case).
"""
