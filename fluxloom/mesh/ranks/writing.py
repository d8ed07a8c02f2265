"""Writing a mesh in a context, with dats and arrays on its cells and nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.errors import MeshError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.sets import Set
from fluxloom.mesh.io import formats
from fluxloom.mesh.io.vtk.cells import sized
from fluxloom.mesh.ranks.distribute import DividedPart
from fluxloom.mesh.ranks.vtkhdf_slices import write_vtkhdf_slices

__all__ = ["Values", "arrays_of", "write_part"]

Values = Mapping[str, Dat | npt.ArrayLike]
"""Name to values: a dat, or an array of shape ``(n,)`` or ``(n, components)``."""


def arrays_of(values: Values | None, over: Set, what: str) -> dict[str, npt.ArrayLike] | None:
    """Return plain arrays of values, dats of rank two and more flattened to components.

    Raises
    ------
    MeshError
        For a dat on another set.
    """
    if not values:
        return None
    out: dict[str, npt.ArrayLike] = {}
    for name, value in values.items():
        if isinstance(value, Dat):
            if value.set is not over:
                raise MeshError(f"{what} {name!r} lives on {value.set}, not on the {over.name} of this mesh")
            array = value.read()
            value = array.reshape(over.size, -1) if array.ndim > 2 else array
        out[name] = value
    return out


def write_part(
    path: Path,
    part: DividedPart,
    cells: Set,
    nodes: Set,
    cell_data: Values | None,
    point_data: Values | None,
    *,
    patches: bool | None = None,
) -> None:
    """Write a mesh that is divided among ranks, with values on the owned elements. Collective.

    Parameters
    ----------
    path
        A ``.vtkhdf`` file.
    part
        This rank's part.
    cells, nodes
        Its sets.
    cell_data, point_data
        As `fluxloom.mesh.ranks.bind.Mesh.write` takes them; the same names on every rank.
    patches
        Whether the patches are written too; by default when there are no values.

    Raises
    ------
    MeshError
        On all ranks, when the file cannot be written, or values do not fit on one.
    """
    comm = part.comm
    if path.suffix.lower() not in formats()["vtkhdf"].suffixes:
        raise MeshError(f"{path}: several ranks write .vtkhdf files only, not {path.suffix or 'one without suffix'}")
    names = comm.allgather((list(cell_data or ()), list(point_data or ())))
    if any(other != names[0] for other in names):
        other = next(rank for rank, found in enumerate(names) if found != names[0])
        raise MeshError(f"{path}: rank 0 writes the values {names[0]}, rank {other} {names[other]}; give all the same")
    on_cells = raise_on_all_ranks(comm, lambda: _owned(arrays_of(cell_data, cells, "cell_data"), cells))
    on_nodes = raise_on_all_ranks(comm, lambda: _owned(arrays_of(point_data, nodes, "point_data"), nodes))
    write_vtkhdf_slices(path, comm, part.to_slice(on_cells, on_nodes), patches=patches)


def _owned(values: Mapping[str, npt.ArrayLike] | None, over: Set) -> dict[str, npt.NDArray[Any]]:
    """Return values on the owned elements as arrays."""
    return {name: sized(name, data, over.size, f"{over.name} of this rank") for name, data in (values or {}).items()}
