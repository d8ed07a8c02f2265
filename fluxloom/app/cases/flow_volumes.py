"""From the table ``[mesh]`` to control volumes, whole or those of one of several ranks, with its patches checked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.app.case import PartitionTable
from fluxloom.app.cases.flow_mesh import FlowMeshTable, flow_mesh
from fluxloom.comm.base import Comm
from fluxloom.core.activity import activity
from fluxloom.core.advice import warn
from fluxloom.core.errors import CaseError, MeshError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.dsl.decompose_report import PartitionReport
from fluxloom.fv.control_volumes import control_volumes
from fluxloom.fv.sides import Family
from fluxloom.fv.volumes import ControlVolumes
from fluxloom.mesh.connectivity import connectivity
from fluxloom.mesh.mesh import MeshData
from fluxloom.mesh.rows import together

if TYPE_CHECKING:
    from fluxloom.fv.node_slopes import NodeSlopes
    from fluxloom.mesh.distribute import MeshPart
    from fluxloom.mesh.wall_distance import WallFaces

__all__ = ["FlowDomain", "check_length", "check_patches", "flow_volumes"]

_AWAY = 1e3
"""How far from the origin a mesh is, in its own sizes, before its round-off is looked at."""
_LOST = 1e-11
"""Round-off of nodes over the smallest spacing that is told."""


@dataclass(frozen=True)
class FlowDomain:
    """Where a flow is.

    Attributes
    ----------
    mesh
        The whole mesh; of several ranks on rank 0 alone, and there only where it deals out control volumes.
    part
        Of several ranks, this one's part of a mesh that is divided before it has control volumes; else None.
    volumes
        Control volumes of this rank.
    partition
        How the mesh is divided; None on a rank alone.
    """

    mesh: MeshData | None
    part: MeshPart | None
    volumes: ControlVolumes
    partition: PartitionReport | None = None

    def wall_distance(self, patches: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the distance of each cell from the nearest face of some patches, ``(cells,)``. Collective."""
        mesh, shared = self.mesh, self.volumes.shared
        from fluxloom.mesh.wall_distance import shared_wall_faces, wall_distance, wall_faces

        if self.part is not None:
            walls = shared_wall_faces(self.part, patches)
        else:
            found = together(shared.comm, lambda: None if mesh is None else wall_faces(mesh, patches))
            walls: WallFaces = shared.comm.broadcast(found)
        return wall_distance(self.volumes.centres[: self.volumes.cells], *walls)

    def node_slopes(self, kind: NodeSlopes) -> tuple[ControlVolumes, Family]:
        """Return control volumes with all that shares a node with a cell, and the rows of slopes. Collective.

        Raises
        ------
        SolverError
            See `fluxloom.fv.node_slopes.node_slopes`.
        """
        from fluxloom.fv.node_rows import NodeRows
        from fluxloom.fv.node_slopes import shared_node_slopes

        mesh, volumes = self.mesh, self.volumes
        if self.part is not None:
            rows = NodeRows.of_part(self.part, volumes)
        else:
            rows = NodeRows.dealt(None if mesh is None else connectivity(mesh), volumes)
        return shared_node_slopes(volumes, rows, kind)


def flow_volumes(
    table: FlowMeshTable,
    partition: PartitionTable,
    context: Context,
    boundaries: Collection[str],
    types: str,
    shares: Sequence[float] | None = None,
) -> FlowDomain:
    """Return the domain of a case; of several ranks, rank 0 makes its mesh and hands it out.

    Parameters
    ----------
    table, partition
        Of the case.
    context
        Whose ranks. Collective.
    boundaries, types
        Names of the tables ``[boundary.NAME]``, and the types that they may have, for messages.
    shares
        Of the ranks; all the same by default.

    Raises
    ------
    CaseError
        See `check_patches`.
    """

    def checked() -> MeshData:
        mesh = flow_mesh(table)
        check_patches(mesh, table.periodic, boundaries, types, table.sectors)
        return mesh

    comm = context.comm
    mesh = together(comm, lambda: checked() if comm.rank == 0 else None)
    if not context.ranked:
        assert mesh is not None
        return FlowDomain(mesh, None, _whole_volumes(mesh, table))
    if comm.broadcast(mesh is not None and mesh.polyhedra is not None):
        return _dealt(comm, mesh, table, partition, shares)
    from fluxloom.fv.control_volumes import FLOW_MAPS, shared_volumes
    from fluxloom.mesh.distribute import distribute_mesh
    from fluxloom.mesh.slices import as_slice

    part = distribute_mesh(
        as_slice(comm, mesh), comm, method=partition.method, shares=shares, maps=FLOW_MAPS
    )  # fmt: skip
    with _named():
        volumes = shared_volumes(part, [(first, second) for first, second in table.periodic], table.turned)
    return FlowDomain(None, part, volumes, part.report())


def _dealt(
    comm: Comm, mesh: MeshData | None, table: FlowMeshTable, partition: PartitionTable, shares: Sequence[float] | None
) -> FlowDomain:
    """Return the domain of one of several ranks, of which rank 0 has the mesh and makes all control volumes."""
    whole = together(comm, lambda: None if mesh is None else _whole_volumes(mesh, table))
    path = comm.broadcast("" if mesh is None else mesh.source.path)
    from fluxloom.fv.divided_volumes import divided_volumes, division_report

    volumes = divided_volumes(comm, whole, method=partition.method, shares=shares, path=path)
    return FlowDomain(mesh, None, volumes, division_report(volumes, partition.method, shares))


def _whole_volumes(mesh: MeshData, table: FlowMeshTable) -> ControlVolumes:
    """Return the control volumes of a whole mesh, its sides joined."""
    with activity("control volumes", f"{mesh.n_cells:,} cells"), _named():
        return control_volumes(mesh, [(first, second) for first, second in table.periodic], sectors=table.turned)


@contextmanager
def _named() -> Iterator[None]:
    """Make errors of sectors ones of the case file."""
    try:
        yield
    except MeshError as error:
        if not str(error).startswith("sectors:"):
            raise
        raise CaseError(f"mesh.{error}") from None


def check_patches(
    mesh: MeshData,
    periodic: Sequence[Sequence[str]] | None,
    boundaries: Collection[str],
    types: str,
    sectors: Sequence[Sequence[str]] = (),
) -> None:
    """Raise `CaseError` unless each patch is joined to another or has a table, and each name is that of a patch.

    ``periodic`` is None where the solver joins no patches.
    """
    _warn_of_round_off(mesh)
    known, keys = list(mesh.patches), {"mesh.periodic": periodic or (), "mesh.sectors": sectors}
    joined = {key: [name for pair in pairs for name in pair] for key, pairs in keys.items()}
    paired = {name: key for key, names in joined.items() for name in names}
    text = ", ".join(known) or "none"
    for key, names in (*joined.items(), ("boundary", boundaries)):
        for name in names:
            if name not in known:
                hint = did_you_mean(name, known)
                raise CaseError(f"{key}: the mesh has no patch {name!r}{hint} (patches: {text})")
    for name in known:
        if name in paired and name in boundaries:
            raise CaseError(f"boundary.{name}: {paired[name]} names this patch too; leave out one of them")
        if name not in paired and name not in boundaries:
            other = "" if periodic is None else ", or name it in mesh.periodic"
            raise CaseError(
                f"boundary: the patch {name!r} has none; add a table [boundary.{name}] with a type ({types}){other}"
            )


def _warn_of_round_off(mesh: MeshData) -> None:
    """Warn where a mesh is so far from the origin that round-off of its nodes is felt."""
    low, high = mesh.points.min(axis=0, initial=np.inf), mesh.points.max(axis=0, initial=-np.inf)
    away, size = float(np.linalg.norm(0.5 * (low + high))), float(np.linalg.norm(high - low))
    if not away > _AWAY * size:
        return
    edges = [mesh.points[nodes] - mesh.points[np.roll(nodes, 1, axis=1)] for nodes in mesh.cells.values()]
    shortest = min((float(np.linalg.norm(edge, axis=2).min()) for edge in edges if edge.size), default=size)
    lost = float(np.finfo(np.float64).eps) * away / shortest if shortest > 0.0 else 0.0
    if lost > _LOST:
        warn(
            f"mesh: its nodes are {away:.3g} from the origin and as near as {shortest:.3g} to each other: they are "
            f"rounded to {lost:.1e} of that, and results are good to ten times as much; move the mesh to the origin"
        )


def check_length(key: str, given: int, d: int) -> None:
    """Raise `CaseError` unless a key has a number a dimension, or none."""
    if given not in (0, d):
        raise CaseError(f"{key}: {d} numbers are wanted, as the mesh has {d} dimensions, not {given}")
