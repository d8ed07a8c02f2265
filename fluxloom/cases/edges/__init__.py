"""The cases of flow and transport on simplices.

Read `flow_tables` and `flow` first, then `transport_tables` and `transport`.
"""
