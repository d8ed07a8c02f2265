"""Triangles from files: STL, and through trimesh OBJ, PLY, OFF, glTF, 3MF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError, SolverError, did_you_mean
from fluxloom.core.packages import guarded, require
from fluxloom.mesh.io.stl import read_stl_corners

__all__ = ["EXTRA", "read_triangles"]

EXTRA = "surface"
"""The extra that has the libraries of surfaces."""


def read_triangles(path: str | Path) -> npt.NDArray[np.float64]:
    """Return the corners of all triangles of a file, ``(n, 3, 3)``: triangle, corner, ``(x, y, z)``, in its units.

    All parts of a file are taken, where its transformations put them.

    Raises
    ------
    SolverError
        If the file cannot be read, has no triangles, or a corner that is not finite.
    DeviceUnavailable
        If trimesh is not installed, for files other than STL.
    """
    path = Path(path)
    if path.suffix.lower() == ".stl":
        try:
            return read_stl_corners(path)
        except MeshError as error:
            raise SolverError(str(error)) from None
    trimesh: Any = require("trimesh", EXTRA, f"reading the surface {path}")
    suffix, known = path.suffix[1:].lower(), sorted(trimesh.exchange.load.mesh_formats())
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise SolverError(f"{path}: cannot be read: {error.strerror}") from error
    if suffix not in known:
        raise SolverError(f"{path}: surfaces are files of {', '.join(known)}{did_you_mean(suffix, known)}")
    with guarded(f"{path}: trimesh cannot read the file", "write it anew", SolverError):
        found: Any = trimesh.load_mesh(str(path), process=False)
        corners = np.array(found.triangles, dtype=np.float64)
    if not len(corners):
        raise SolverError(f"{path}: the file has no triangles, or is cut off; write it anew")
    if not np.isfinite(corners).all():
        raise SolverError(f"{path}: a corner is not finite; write the file anew")
    return corners
