"""The Airfoil benchmark as a run sees it.

Read `flow` first, then `surface`, its wall.
"""
