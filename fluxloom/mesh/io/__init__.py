"""Mesh files: SU2, Gmsh, CGNS, VTU, VTKHDF, and through meshio every other."""

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
from fluxloom.mesh.io.vtk_cells import Fields

__all__ = ["Fields", "MeshFormat", "formats", "output_format", "output_formats", "read", "read_fields", "write"]
