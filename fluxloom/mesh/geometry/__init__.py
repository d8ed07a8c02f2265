"""What follows from points and cells: faces, neighbours, volumes, areas, distances.

Read `connectivity` and `metrics` first, then `dual`, `divide` (cells as simplices), `transfer` (values of one mesh at
places of another). `box_tree`, `search` and `simplices` find what is near.
"""
