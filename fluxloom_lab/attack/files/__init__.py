"""Valid files of every kind that is read, as bytes: what attacks on readers begin with.

`texts` and `cgns` write mesh files as other programs write them, `meshes` has samples of all formats of meshes,
`states` those of checkpoints, results, tables and tunings.
"""
