"""What every other room may use: errors, access modes, types of numbers and layouts, named choices.

Read `errors` first (what each kind of mistake is raised as), then `access` and `dtypes` (what declarations of loops are
made of), `registry` and `strategies` (choices by name, and as values). Nothing here imports another room.
"""
