"""From the table ``[mesh]`` to control volumes, whole or those of one of several ranks, with its patches checked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.app.case import PartitionTable
from fluxloom.app.cases.flow_mesh import FlowMeshTable, flow_mesh
from fluxloom.core.errors import CaseError, MeshError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.dsl.decompose_report import PartitionReport
from fluxloom.fv.control_volumes import ControlVolumes, control_volumes
from fluxloom.fv.sectors import sector_volumes
from fluxloom.fv.shared_volumes import FLOW_MAPS, shared_volumes
from fluxloom.mesh.distribute import MeshPart, distribute_mesh
from fluxloom.mesh.mesh import MeshData
from fluxloom.mesh.rows import together
from fluxloom.mesh.slices import as_slice
from fluxloom.mesh.wall_distance import shared_wall_faces, wall_distance, wall_faces

__all__ = ["FlowDomain", "check_length", "check_patches", "flow_volumes"]


@dataclass(frozen=True)
class FlowDomain:
    """Where a flow is.

    Attributes
    ----------
    mesh
        The whole mesh; None on several ranks.
    part
        Of several ranks, this one's part of it; None on a rank alone.
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
        if self.part is not None:
            walls = shared_wall_faces(self.part, patches)
        else:
            assert self.mesh is not None
            walls = wall_faces(self.mesh, patches)
        return wall_distance(self.volumes.centres[: self.volumes.cells], *walls)


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
    if table.sectors and context.ranked:
        raise CaseError(
            "mesh.sectors: patches that are joined by a rotation run on one rank alone: start fewer ranks, or join "
            "patches that are one another's translation (mesh.periodic)"
        )
    mesh = together(comm, lambda: checked() if comm.rank == 0 else None)
    if not context.ranked:
        assert mesh is not None
        return FlowDomain(mesh, None, _whole_volumes(mesh, table))
    part = distribute_mesh(
        as_slice(comm, mesh), comm, method=partition.method, shares=shares, maps=FLOW_MAPS
    )  # fmt: skip
    volumes = shared_volumes(part, [(first, second) for first, second in table.periodic])
    return FlowDomain(None, part, volumes, part.ranked.decomposition.report())


def _whole_volumes(mesh: MeshData, table: FlowMeshTable) -> ControlVolumes:
    """Return the control volumes of a rank alone, its sides joined."""
    volumes = control_volumes(mesh, [(first, second) for first, second in table.periodic])
    try:
        return sector_volumes(volumes, table.turned) if table.sectors else volumes
    except MeshError as error:
        raise CaseError(f"mesh.{error}") from None


def check_patches(
    mesh: MeshData,
    periodic: Sequence[Sequence[str]],
    boundaries: Collection[str],
    types: str,
    sectors: Sequence[Sequence[str]] = (),
) -> None:
    """Raise `CaseError` unless each patch is joined to another or has a table, and each name is that of a patch."""
    known, keys = list(mesh.patches), {"mesh.periodic": periodic, "mesh.sectors": sectors}
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
            raise CaseError(
                f"boundary: the patch {name!r} has none; add a table [boundary.{name}] with a type ({types}), or name "
                "it in mesh.periodic"
            )


def check_length(key: str, given: int, d: int) -> None:
    """Raise `CaseError` unless a key has a number a dimension, or none."""
    if given not in (0, d):
        raise CaseError(f"{key}: {d} numbers are wanted, as the mesh has {d} dimensions, not {given}")
