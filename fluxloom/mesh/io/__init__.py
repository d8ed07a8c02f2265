"""Mesh files: SU2, Gmsh, CGNS, VTU, VTKHDF, Abaqus, STL, and through meshio every other.

Read `formats` (which file goes to which reader) first, then `su2`, the shortest reader, and `tables` (what readers
share). `cgns`, `vtk` and `gmsh` are rooms of one format each.
"""

from __future__ import annotations

from fluxloom.mesh.io.formats import (
    MeshFormat,
    formats,
    output_format,
    output_formats,
    read,
    read_fields,
    write,
)
from fluxloom.mesh.io.vtk.cells import Fields

__all__ = ["Fields", "MeshFormat", "formats", "output_format", "output_formats", "read", "read_fields", "write"]
