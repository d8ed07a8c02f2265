"""Meshes: elements, connectivity, geometry, checks, generators, files, renumbering; and a mesh in a context."""

from __future__ import annotations

from fluxloom.mesh.airfoil import AirfoilMesh, airfoil_mesh
from fluxloom.mesh.bind import Mesh, bind, read
from fluxloom.mesh.check import check
from fluxloom.mesh.connectivity import Connectivity
from fluxloom.mesh.generate import box2d, box3d
from fluxloom.mesh.geometry import Geometry
from fluxloom.mesh.io import read as read_data
from fluxloom.mesh.io import read_fields, write
from fluxloom.mesh.mesh import MeshData, MeshSource, PatchFaces, Ragged
from fluxloom.mesh.orient import orient
from fluxloom.mesh.renumber import Permutation, renumber, renumber_sets
from fluxloom.mesh.report import MeshReport

__all__ = [
    "AirfoilMesh",
    "Connectivity",
    "Geometry",
    "Mesh",
    "MeshData",
    "MeshReport",
    "MeshSource",
    "PatchFaces",
    "Permutation",
    "Ragged",
    "airfoil_mesh",
    "bind",
    "box2d",
    "box3d",
    "check",
    "orient",
    "read",
    "read_data",
    "read_fields",
    "renumber",
    "renumber_sets",
    "write",
]
