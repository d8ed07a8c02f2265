"""From the table ``[mesh]`` to a mesh seen from its points, whole or that of one of several ranks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from fluxloom.app.case import PartitionTable
from fluxloom.app.cases.flow_mesh import FlowMeshTable
from fluxloom.app.cases.flow_start import explained
from fluxloom.app.cases.flow_volumes import by_key, flow_domain
from fluxloom.dsl.context import Context
from fluxloom.dsl.decompose_report import PartitionReport
from fluxloom.fe.point_mesh import PointMesh, point_mesh
from fluxloom.mesh.mesh import MeshData

__all__ = ["EdgeDomain", "edge_domain"]


@dataclass(frozen=True)
class EdgeDomain:
    """Where a solver on edges works.

    Attributes
    ----------
    mesh
        Points and simplices of this rank.
    whole
        Returns the whole mesh; made anew on ranks that do not have it.
    partition
        How the mesh is divided; None on a rank alone.
    """

    mesh: PointMesh
    whole: Callable[[], MeshData]
    partition: PartitionReport | None


def edge_domain(
    table: FlowMeshTable, partition: PartitionTable, context: Context, boundaries: Collection[str], types: str
) -> EdgeDomain:
    """Return the mesh of a case, divided on several ranks. Collective.

    Parameters
    ----------
    table, partition
        ``[mesh]`` and ``[partition]``.
    boundaries
        Names of the tables ``[boundary.NAME]``.
    types
        Of a boundary, in words for messages.

    Raises
    ------
    CaseError
        For other cells than triangles or tetrahedra, a patch without a table or a table without a patch.
    """
    domain = flow_domain(table, partition)
    with by_key(types):
        data = domain.checked(context, boundaries, joins=False)
    with explained("mesh"):
        mesh = point_mesh(context, data, method=domain.method, shares=domain.shares)
    whole = domain.whole if data is None else (lambda: data)
    return EdgeDomain(mesh, whole, mesh.mesh.part.report())
