"""Reading a mesh into a context, on one rank or on several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.comm.base import Comm
from fluxloom.dsl.context import Context
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.io import formats
from fluxloom.mesh.io import read as read_data
from fluxloom.mesh.quality.check import check as check_mesh
from fluxloom.mesh.ranks.bind import Mesh
from fluxloom.mesh.ranks.distribute import Partition, distribute_mesh
from fluxloom.mesh.ranks.renumber import MeshRenumbering, Method
from fluxloom.mesh.ranks.renumber import renumber as renumber_mesh
from fluxloom.mesh.ranks.slice_check import require_patches
from fluxloom.mesh.ranks.slices import share_out
from fluxloom.mesh.ranks.vtkhdf_slices import has_slices, read_vtkhdf_slice

__all__ = ["read"]


def read(
    path: str | Path,
    context: Context,
    *,
    renumber: Method | None = None,
    check: bool = True,
    required_patches: Iterable[str] = (),
    format: str | None = None,
    dtype: npt.DTypeLike = "float64",
    partition: Partition = "auto",
    shares: Sequence[float] | None = None,
    maps: Iterable[str] | None = None,
) -> Mesh:
    """Read a mesh and bind it to a context.

    Parameters
    ----------
    path
        The file; its suffix tells the format (SU2, Gmsh, CGNS, VTU, VTKHDF, and meshio's).
    context
        Where its sets and dats live.
    renumber
        ``"rcm"`` or ``"gps"`` bring neighbours close together in memory; None keeps the order of the file.
    check
        Whether to look for broken elements, inverted cells and the like first (see `fluxloom.mesh.quality.check`).
    required_patches
        Patches that must exist.
    format
        Name of the format, when the suffix does not tell.
    dtype
        Of coordinates and metric terms.
    partition, shares, maps
        On several ranks, as `Mesh` takes them.

    Notes
    -----
    Several ranks read slices of a ``.vtkhdf`` file, and none ever has the whole mesh. Any other file, and any mesh
    that is to be renumbered, is read by rank 0, which then holds the mesh and what checking it needs (some 500 bytes a
    quadrilateral or a tetrahedron of the whole mesh), and hands out slices. Dividing a mesh takes every rank at most
    some 600 bytes a quadrilateral, 700 a tetrahedron, of its share. An error that one rank finds is raised on all.

    Raises
    ------
    MeshError
        For a broken file or mesh, with the line or element, and for a missing patch, with those there are.
    DeviceUnavailable
        When the format, or renumbering, needs a package that is not installed.
    """
    path, required = Path(path), tuple(required_patches)

    def whole() -> tuple[MeshData, MeshRenumbering | None]:
        """Read, check and renumber a mesh."""
        data = read_data(path, format=format)
        if check:
            check_mesh(data, required)
        for name in required:
            data.patch(name)
        if renumber is None:
            return data, None
        renumbering = renumber_mesh(data, renumber)
        return renumbering.mesh, renumbering

    if not context.distributed:
        data, renumbering = whole()
        return Mesh(data, context, dtype=dtype, renumbering=renumbering)
    comm = context.comm
    sliced = renumber is None and _has_slices(path, comm, format)
    if sliced:
        given = read_vtkhdf_slice(path, comm, data=False)
        require_patches(given, required)
    else:
        given = share_out(comm, raise_on_all_ranks(comm, lambda: None if comm.rank else whole()[0]))
    part = distribute_mesh(
        given, comm, method=partition, shares=shares, maps=maps, check=check and sliced, orient=sliced,
    )  # fmt: skip
    return Mesh(part, context, dtype=dtype)


def _has_slices(path: Path, comm: Comm, format: str | None) -> bool:
    """Whether every rank reads its own slice of a file. Collective."""
    suffixes = formats()["vtkhdf"].suffixes
    if format != "vtkhdf" and (format is not None or path.suffix.lower() not in suffixes):
        return False
    return comm.allgather(raise_on_all_ranks(comm, lambda: comm.rank == 0 and has_slices(path)))[0]
