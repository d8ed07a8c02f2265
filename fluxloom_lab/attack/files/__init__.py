"""Valid files of every kind that is read, as bytes, and what may happen to them.

`texts` and `cgns` write mesh files as other programs write them, `meshes` has samples of all formats of meshes,
`states` those of checkpoints, results, tables and tunings; `samples` makes them once. `mutations` changes bytes and
lines, `hdf5` what is in an HDF5 file. `sound` judges a mesh that was read, `memory` bounds what reading takes.
"""
