"""Meshes as arrays and files: elements, connectivity, geometry, checks, generators, formats, division over ranks.

Read `data` (what a mesh is) and `geometry` (faces, volumes) first, then `quality` (what is refused), `io` (formats),
`generate` (shapes), `ranks` (a mesh in a context, on one rank or several).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluxloom.core.packages import import_late

if TYPE_CHECKING:
    from fluxloom.mesh.data.mesh import MeshData, MeshSource, PatchFaces, Ragged
    from fluxloom.mesh.generate.airfoil import AirfoilMesh, AirfoilSlice, airfoil_mesh, airfoil_slice
    from fluxloom.mesh.generate.boxes import box2d, box3d
    from fluxloom.mesh.generate.cluster import Clustering, cluster
    from fluxloom.mesh.generate.refine import refine
    from fluxloom.mesh.geometry.connectivity import Connectivity
    from fluxloom.mesh.geometry.metrics import Geometry
    from fluxloom.mesh.io import read as read_data
    from fluxloom.mesh.io import read_fields, write
    from fluxloom.mesh.quality.check import check
    from fluxloom.mesh.quality.measures import Quality, quality
    from fluxloom.mesh.quality.orient import orient
    from fluxloom.mesh.quality.report import MeshReport
    from fluxloom.mesh.ranks.bind import Mesh, bind
    from fluxloom.mesh.ranks.distribute import DistributedMesh, distribute, distribute_mesh
    from fluxloom.mesh.ranks.part import MeshPart
    from fluxloom.mesh.ranks.reading import read
    from fluxloom.mesh.ranks.renumber import Permutation, renumber, renumber_sets
    from fluxloom.mesh.ranks.slices import MeshSlice

__all__ = [
    "AirfoilMesh",
    "AirfoilSlice",
    "Clustering",
    "Connectivity",
    "DistributedMesh",
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
        "fluxloom.mesh.data.mesh": "MeshData MeshSource PatchFaces Ragged",
        "fluxloom.mesh.generate.airfoil": "AirfoilMesh AirfoilSlice airfoil_mesh airfoil_slice",
        "fluxloom.mesh.generate.boxes": "box2d box3d",
        "fluxloom.mesh.generate.cluster": "Clustering cluster",
        "fluxloom.mesh.generate.refine": "refine",
        "fluxloom.mesh.geometry.connectivity": "Connectivity",
        "fluxloom.mesh.geometry.metrics": "Geometry",
        "fluxloom.mesh.io": "read=read_data read_fields write",
        "fluxloom.mesh.quality.check": "check",
        "fluxloom.mesh.quality.measures": "Quality quality",
        "fluxloom.mesh.quality.orient": "orient",
        "fluxloom.mesh.quality.report": "MeshReport",
        "fluxloom.mesh.ranks.bind": "Mesh bind",
        "fluxloom.mesh.ranks.distribute": "DistributedMesh distribute distribute_mesh",
        "fluxloom.mesh.ranks.part": "MeshPart",
        "fluxloom.mesh.ranks.reading": "read",
        "fluxloom.mesh.ranks.renumber": "Permutation renumber renumber_sets",
        "fluxloom.mesh.ranks.slices": "MeshSlice",
    })  # fmt: skip
