"""What a run writes: its folder, files that are written whole or not at all, series, pictures.

Read `results` (whose the folder is) and `files` first, then `series`, `image_data`, `movies` with `figures`, `reports`,
`case_difference` (what a restart changes).
"""
