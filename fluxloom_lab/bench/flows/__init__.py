"""Measurements of flow solvers on meshes.

Read `airfoil` first.
"""
