"""Control volumes of the mesh of a flow, whole or those of one of several ranks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.activity import activity
from fluxloom.dsl.context import Context
from fluxloom.flows.domain import Domain, MeshLike
from fluxloom.fv.control_volumes import control_volumes
from fluxloom.fv.sides import Family
from fluxloom.fv.volumes import ControlVolumes
from fluxloom.mesh.connectivity import connectivity
from fluxloom.mesh.mesh import MeshData
from fluxloom.mesh.rows import together

if TYPE_CHECKING:
    from fluxloom.dsl.decompose_report import PartitionReport
    from fluxloom.fv.node_slopes import NodeSlopes
    from fluxloom.mesh.mesh_part import MeshPart
    from fluxloom.mesh.wall_distance import WallFaces

__all__ = ["FlowDomain", "flow_volumes"]


@dataclass(frozen=True, eq=False)
class FlowDomain:
    """Where a flow in control volumes is.

    Attributes
    ----------
    domain
        What it was made of.
    mesh
        The whole mesh; of several ranks on rank 0 alone, and there only where it deals out control volumes.
    part
        Of several ranks, this one's part of a mesh that is divided before it has control volumes; else None.
    volumes
        Control volumes of this rank.
    partition
        How the mesh is divided; None on a rank alone.
    """

    domain: Domain
    mesh: MeshData | None
    part: MeshPart | None
    volumes: ControlVolumes
    partition: PartitionReport | None = None

    def description(self) -> Domain:
        """Return what tells it from others, for runs that go on."""
        return self.domain

    def kept(self) -> Domain:
        """Return the domain with the mesh that is there, which need not be made anew."""
        return self.domain.keeping(self.mesh)

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


def flow_volumes(mesh: MeshLike, context: Context, boundaries: Collection[str]) -> FlowDomain:
    """Return control volumes of a mesh; of several ranks, rank 0 makes it and hands it out. Collective.

    Parameters
    ----------
    mesh
        The mesh, its path, or a `Domain` of it.
    context
        Whose ranks.
    boundaries
        Names of the patches that have a boundary condition.

    Raises
    ------
    MeshError
        See `Domain.checked`; and where patches that are joined do not fit each other.
    """
    domain, comm = Domain.of(mesh), context.comm
    whole = domain.checked(context, boundaries)
    if not context.ranked:
        assert whole is not None
        return FlowDomain(domain, whole, None, _whole_volumes(whole, domain))
    if comm.broadcast(whole is not None and whole.polyhedra is not None):
        return _dealt(comm, whole, domain)
    from fluxloom.fv.control_volumes import FLOW_MAPS, shared_volumes
    from fluxloom.mesh.distribute import distribute_mesh
    from fluxloom.mesh.slices import as_slice

    part = distribute_mesh(
        as_slice(comm, whole), comm, method=domain.method, shares=domain.shares, maps=FLOW_MAPS
    )  # fmt: skip
    volumes = shared_volumes(part, _pairs(domain), domain.sectors)
    return FlowDomain(domain, None, part, volumes, part.report())


def _dealt(comm: Comm, mesh: MeshData | None, domain: Domain) -> FlowDomain:
    """Return the domain of one of several ranks, of which rank 0 has the mesh and makes all control volumes."""
    whole = together(comm, lambda: None if mesh is None else _whole_volumes(mesh, domain))
    path = comm.broadcast("" if mesh is None else mesh.source.path)
    from fluxloom.fv.divided_volumes import divided_volumes, division_report

    volumes = divided_volumes(comm, whole, method=domain.method, shares=domain.shares, path=path)
    return FlowDomain(domain, mesh, None, volumes, division_report(volumes, domain.method, domain.shares))


def _whole_volumes(mesh: MeshData, domain: Domain) -> ControlVolumes:
    """Return the control volumes of a whole mesh, its sides joined."""
    with activity("control volumes", f"{mesh.n_cells:,} cells"):
        return control_volumes(mesh, _pairs(domain), sectors=domain.sectors)


def _pairs(domain: Domain) -> list[tuple[str, str]]:
    return [(first, second) for first, second in domain.periodic]
