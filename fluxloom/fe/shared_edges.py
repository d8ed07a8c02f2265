"""Edge operators of a mesh that is divided by its points: each rank has complete rows of those that it owns.

A rank assembles its cells, in the order of the whole mesh and by the loops of one rank, and keeps the rows of its own
points. Rows keep the order of their entries, whatever the number of ranks is, so that what is gathered from neighbours
is the same to the bit with ``Schedule(deterministic="global")``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.core.layout import Layout, SoA
from fluxloom.dsl.context import Context
from fluxloom.dsl.entries import entries_of
from fluxloom.dsl.ragged import RaggedLayout
from fluxloom.dsl.schedule import Schedule
from fluxloom.fe.edge_operators import EdgeOperators
from fluxloom.fe.point_mesh import PointMesh
from fluxloom.mesh.rows import together

__all__ = ["operators_on", "shared_edge_operators"]


def shared_edge_operators(
    mesh: PointMesh,
    *,
    layout: RaggedLayout | None = None,
    storage: Layout | None = None,
    schedule: Schedule | None = None,
) -> EdgeOperators:
    """Assemble the operators of the points of this rank, on one rank or several. Collective.

    Parameters
    ----------
    mesh
        From `fluxloom.fe.point_mesh.point_mesh`; its ``points`` are those of the operators.
    layout, storage, schedule
        As `EdgeOperators.of` takes them.

    Raises
    ------
    MeshError
        On every rank, see `EdgeOperators.of`; and when a rank has no points.
    """
    context = mesh.context
    if not context.ranked:
        return EdgeOperators.of(
            context, mesh.mesh.data, points=mesh.points, layout=layout, storage=storage, schedule=schedule
        )
    found, order = together(context.comm, lambda: _assembled(mesh, schedule))
    place = np.empty(mesh.numbers.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    rows = place[: mesh.points.size]
    pattern = found.neighbours
    lengths = np.diff(pattern.offsets)[rows]
    chosen = entries_of(pattern.offsets[rows], lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    neighbours = context.ragged(
        mesh.points, mesh.points, offsets, order[pattern.indices[chosen]], "neighbours", layout
    )  # fmt: skip
    entries = context.dat(neighbours.entries, found.entries.read()[chosen], "edge_operators", layout=storage)
    mass = context.dat(mesh.points, found.mass.read()[rows], "lumped_mass")
    return replace(found, points=mesh.points, neighbours=neighbours, entries=entries, mass=mass)


def operators_on(mesh: PointMesh, given: EdgeOperators | None) -> EdgeOperators:
    """Return the operators that a solver works with: those given, or new ones with ``SoA`` storage. Collective.

    Most loops read a few numbers of an edge.

    Raises
    ------
    MeshError
        If the mesh is not seen from its points, or the operators are of another one; see `shared_edge_operators` too.
    """
    if not isinstance(mesh, PointMesh):
        raise MeshError(f"mesh: what fluxloom.fe.point_mesh.point_mesh(context, data) returns, not {mesh!r}")
    if given is not None and given.points is not mesh.points:
        raise MeshError(f"{mesh.mesh.path}: the operators are of another mesh: take those of this one")
    return given if given is not None else shared_edge_operators(mesh, storage=SoA())


def _assembled(mesh: PointMesh, schedule: Schedule | None) -> tuple[EdgeOperators, npt.NDArray[np.int64]]:
    """Return the operators of this rank's cells alone, in a context of their own on the same device.

    And the local number of each of their points.
    """
    if not mesh.points.size:
        raise MeshError(f"{mesh.mesh.path}: rank {mesh.context.comm.rank} has no points: run with fewer ranks")
    own = mesh.context
    alone = Context(own.device, schedule=own.schedule, tuning=own.tuning, check=own.check)
    cells, order = mesh.local_mesh()
    return EdgeOperators.of(alone, cells, schedule=schedule), order
