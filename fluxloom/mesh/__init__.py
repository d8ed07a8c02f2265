"""Meshes: elements, connectivity, geometry, checks, generators, files, renumbering; and a mesh in a context.

Read `mesh` (what a mesh is as arrays) and `elements` first, then `connectivity` and `geometry`, `generate` (boxes;
other shapes have files of their own), `io` (formats), `sound` and `check` (what is refused), `bind` and `distribute` (a
mesh in a context, and on ranks).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluxloom.core.packages import import_late

if TYPE_CHECKING:
    from fluxloom.mesh.airfoil import AirfoilMesh, AirfoilSlice, airfoil_mesh, airfoil_slice
    from fluxloom.mesh.bind import Mesh, bind
    from fluxloom.mesh.check import check
    from fluxloom.mesh.cluster import Clustering, cluster
    from fluxloom.mesh.connectivity import Connectivity
    from fluxloom.mesh.distribute import RankedMesh, distribute, distribute_mesh
    from fluxloom.mesh.generate import box2d, box3d
    from fluxloom.mesh.geometry import Geometry
    from fluxloom.mesh.io import read as read_data
    from fluxloom.mesh.io import read_fields, write
    from fluxloom.mesh.mesh import MeshData, MeshSource, PatchFaces, Ragged
    from fluxloom.mesh.mesh_part import MeshPart
    from fluxloom.mesh.orient import orient
    from fluxloom.mesh.quality import Quality, quality
    from fluxloom.mesh.reading import read
    from fluxloom.mesh.refine import refine
    from fluxloom.mesh.renumber import Permutation, renumber, renumber_sets
    from fluxloom.mesh.report import MeshReport
    from fluxloom.mesh.slices import MeshSlice

__all__ = [
    "AirfoilMesh",
    "AirfoilSlice",
    "Clustering",
    "Connectivity",
    "Geometry",
    "Mesh",
    "MeshData",
    "MeshPart",
    "MeshReport",
    "MeshSlice",
    "MeshSource",
    "PatchFaces",
    "Permutation",
    "Quality",
    "Ragged",
    "RankedMesh",
    "airfoil_mesh",
    "airfoil_slice",
    "bind",
    "box2d",
    "box3d",
    "check",
    "cluster",
    "distribute",
    "distribute_mesh",
    "orient",
    "quality",
    "read",
    "read_data",
    "read_fields",
    "refine",
    "renumber",
    "renumber_sets",
    "write",
]

if not TYPE_CHECKING:
    import_late(__name__, {
        "fluxloom.mesh.airfoil": "AirfoilMesh AirfoilSlice airfoil_mesh airfoil_slice",
        "fluxloom.mesh.bind": "Mesh bind",
        "fluxloom.mesh.check": "check",
        "fluxloom.mesh.cluster": "Clustering cluster",
        "fluxloom.mesh.connectivity": "Connectivity",
        "fluxloom.mesh.distribute": "RankedMesh distribute distribute_mesh",
        "fluxloom.mesh.mesh_part": "MeshPart",
        "fluxloom.mesh.generate": "box2d box3d",
        "fluxloom.mesh.geometry": "Geometry",
        "fluxloom.mesh.io": "read=read_data read_fields write",
        "fluxloom.mesh.mesh": "MeshData MeshSource PatchFaces Ragged",
        "fluxloom.mesh.orient": "orient",
        "fluxloom.mesh.quality": "Quality quality",
        "fluxloom.mesh.reading": "read",
        "fluxloom.mesh.refine": "refine",
        "fluxloom.mesh.renumber": "Permutation renumber renumber_sets",
        "fluxloom.mesh.report": "MeshReport",
        "fluxloom.mesh.slices": "MeshSlice",
    })  # fmt: skip
