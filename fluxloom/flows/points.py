"""The mesh of a flow as seen from its points, whole or that of one of several ranks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.errors import MeshError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.fe.edges.point_mesh import PointMesh, point_mesh
from fluxloom.flows.volumes import Domain, MeshLike
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.divide import divided

__all__ = ["PointDomain", "flow_points"]


@dataclass(frozen=True, eq=False)
class PointDomain:
    """Where a flow at points is.

    Attributes
    ----------
    domain
        What it was made of.
    mesh
        The whole mesh; of several ranks on rank 0 alone.
    points
        Points and simplices of this rank.
    """

    domain: Domain
    mesh: MeshData | None
    points: PointMesh

    def description(self) -> Domain:
        """Return what tells it from others, for runs that go on."""
        return self.domain

    def kept(self) -> Domain:
        """Return the domain with the mesh that is there, which need not be made anew."""
        return self.domain.keeping(self.mesh)

    def check_context(self, context: Context | None) -> None:
        """Raise `SolverError` for a context that is given and not that of the points."""
        if context is not None and context is not self.points.context:
            raise SolverError("context: the points were dealt out in another one; leave it out")


def flow_points(
    mesh: MeshLike, context: Context, boundaries: Collection[str], *, divide: bool = False
) -> PointDomain:  # fmt: skip
    """Return the points of a mesh of triangles or tetrahedra; rank 0 makes it and hands it out. Collective.

    Parameters
    ----------
    mesh
        The mesh, its path, or a `Domain` of it, which joins no patches.
    context
        Whose ranks.
    boundaries
        Names of the patches that have a boundary condition.
    divide
        Whether other cells are divided into triangles or tetrahedra, see `fluxloom.mesh.geometry.divide`.

    Raises
    ------
    MeshError
        See `Domain.checked`; and for other cells than triangles or tetrahedra, or that are not divided.
    """
    domain = Domain.of(mesh)
    data = domain.checked(context, boundaries, joins=False)
    try:
        if divide:
            data = raise_on_all_ranks(context.comm, lambda: None if data is None else divided(data))
        found = point_mesh(context, data, method=domain.method, shares=domain.shares)
    except MeshError as error:
        raise MeshError(f"mesh: {error}") from None
    return PointDomain(domain, data, found)
