"""Gmsh as a library: a session of its own for each mesh, without files, repeatable, and its mesh as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from fluxloom.core.errors import DeviceUnavailable, MeshError
from fluxloom.core.packages import guarded
from fluxloom.mesh.data.elements import element
from fluxloom.mesh.data.mesh import IntArray, MeshData, MeshSource, PatchFaces
from fluxloom.mesh.quality.orient import orient

__all__ = ["gmsh_arrays", "gmsh_session"]

_OPTIONS = {
    "General.Terminal": 0, "General.NumThreads": 1, "Mesh.RandomSeed": 1, "Mesh.ElementOrder": 1, "Mesh.Optimize": 1,
    "Mesh.Algorithm": 6, "Mesh.Algorithm3D": 10, "Mesh.MeshSizeExtendFromBoundary": 0, "Mesh.MeshSizeFromPoints": 0,
    "Mesh.MeshSizeFromCurvature": 0,
}  # fmt: skip
"""One thread and a fixed seed; frontal-Delaunay triangles, tetrahedra by HXT with its optimiser; sizes from a field."""


@contextmanager
def gmsh_session(what: str) -> Iterator[Any]:
    """Yield the module ``gmsh`` with an empty model, ready to draw and mesh; afterwards nothing of it is left.

    The user's option files are not read, so that a mesh depends on its description and the version of Gmsh alone.

    Parameters
    ----------
    what
        What is meshed, for messages.

    Raises
    ------
    DeviceUnavailable
        Where Gmsh is not installed, or a library that it needs is not.
    MeshError
        Where Gmsh fails, or the program uses it already.

    References
    ----------
    C. Marot, J. Pellerin, J.-F. Remacle: *One machine, one minute, three billion tetrahedra*. International Journal for
    Numerical Methods in Engineering 117, 2019 (HXT).
    """
    gmsh = _loaded()
    if gmsh.isInitialized():
        raise MeshError(f"{what}: this program uses Gmsh already; call gmsh.finalize() before")
    gmsh.initialize(["gmsh", "-nopopup"], readConfigFiles=False, interruptible=False)
    try:
        with guarded(f"{what}: Gmsh fails", "try other sizes", MeshError):
            for name, value in _OPTIONS.items():
                gmsh.option.setNumber(name, value)
            gmsh.model.add("fluxloom")
            yield gmsh
    finally:
        gmsh.finalize()


def _loaded() -> Any:
    """Return the module ``gmsh``."""
    try:
        import gmsh
    except (ImportError, OSError) as error:
        raise DeviceUnavailable(
            f"this mesh needs Gmsh, which cannot be loaded ({error}): pip install 'fluxloom[mesh]', and on Debian "
            "apt install libglu1-mesa libxcursor1 libxft2 libxinerama1"
        ) from None
    return gmsh


def gmsh_arrays(gmsh: Any, dimension: int, patches: Mapping[str, Sequence[int]], name: str) -> MeshData:
    """Return the simplices of the model as arrays.

    Parameters
    ----------
    gmsh
        Within a session, after the mesh has been generated.
    dimension
        2: all triangles are cells, in the plane z = 0; 3: all tetrahedra are.
    patches
        Patch to the tags of its curves or surfaces.
    name
        The source that messages name.
    """
    mesh, kind, side = gmsh.model.mesh, ("triangle", "tetra")[dimension - 2], ("line", "triangle")[dimension - 2]
    tags, places, _ = mesh.getNodes()
    cells = _nodes(mesh, kind, -1)
    if not len(cells):
        raise MeshError(f"{name}: Gmsh made no {kind}; try other sizes")
    used = np.unique(cells)
    number = np.full(int(tags.max()) + 1, -1, dtype=np.int32)
    number[used] = np.arange(len(used), dtype=np.int32)
    row = np.zeros(len(number), dtype=np.int64)
    row[tags] = np.arange(len(tags))
    points = places.reshape(-1, 3)[row[used], :dimension]
    faces = {
        patch: PatchFaces({side: number[np.concatenate([_nodes(mesh, side, tag) for tag in entities])]})
        for patch, entities in patches.items()
    }
    return orient(MeshData(points, {kind: number[cells]}, faces, MeshSource(name)))[0]


def _nodes(mesh: Any, kind: str, tag: int) -> IntArray:
    """Return the tags of the nodes of the elements of one type of an entity; -1: of all."""
    found = element(kind)
    return mesh.getElementsByType(found.gmsh, tag)[1].reshape(-1, found.n_nodes).astype(np.int64)
