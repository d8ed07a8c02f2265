"""The domain of a flow: a mesh, how ranks divide it, and the control volumes on it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.comm import detect
from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.activity import activity
from fluxloom.core.advice import warn
from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.fv.geometry.volumes import ControlVolumes, Family
from fluxloom.mesh.data.mesh import MeshData

if TYPE_CHECKING:
    from fluxloom.dsl.ranks.decompose_report import PartitionReport
    from fluxloom.fv.geometry.sectors import Sector
    from fluxloom.fv.gradients.node_gradients import NodeGradients
    from fluxloom.mesh.ranks.distribute import Partition
    from fluxloom.mesh.ranks.part import MeshPart

__all__ = ["Domain", "FlowDomain", "MeshLike", "Misfit", "PatchError", "flow_volumes", "usual_context"]

_AWAY = 1e3
"""How far from the origin a mesh is, in its own sizes, before its round-off is looked at."""
_LOST = 1e-11
"""Round-off of nodes over the smallest spacing that is told."""


def usual_context(given: Context | None) -> Context:
    """Return what a flow runs in: what is given, else the CPU, with the ranks of mpiexec where it has started some."""
    return Context("cpu", comm=detect()) if given is None else given


@dataclass(frozen=True)
class Misfit:
    """What does not fit of the patches of a mesh and what is given for patches by name.

    Attributes
    ----------
    parameter
        That names the patch: ``boundaries``, ``periodic`` or ``sectors``.
    patch
        Its name.
    text
        What is wrong.
    joined
        The parameter that names it too, where two do.
    lacking
        Whether the patch has no boundary condition.
    joins
        Whether it could be joined to another instead.
    """

    parameter: str
    patch: str
    text: str
    joined: str = ""
    lacking: bool = False
    joins: bool = False


class PatchError(MeshError):
    """Patches of a mesh, and what is given for patches by name, do not fit; ``misfit`` says how."""

    def __init__(self, misfit: Misfit) -> None:
        self.misfit = misfit
        super().__init__(f"{misfit.parameter}: {misfit.text}")


@dataclass(frozen=True, eq=False)
class Domain:
    """A mesh as a flow takes it, where there is more to say than which mesh it is.

    Attributes
    ----------
    mesh
        The mesh, the path of its file, or a function that returns it; on several ranks that of rank 0 counts.
    periodic
        Pairs of patches which are one and the same, moved.
    sectors
        Pairs of patches of which one is the other, turned about an axis.
    method, shares
        How several ranks divide it, see `fluxloom.mesh.ranks.distribute.distribute_mesh`.
    """

    mesh: MeshData | str | Path | Callable[[], MeshData] | None
    periodic: Sequence[Sequence[str]] = ()
    sectors: Sequence[Sector] = ()
    method: Partition = "auto"
    shares: Sequence[float] | None = None

    @classmethod
    def of(cls, mesh: MeshLike) -> Domain:
        """Return a domain as it is, of a mesh one that joins nothing."""
        return mesh if isinstance(mesh, Domain) else cls(mesh)

    def keeping(self, mesh: MeshData | None) -> Domain:
        """Return a domain whose mesh is not made anew; of no mesh, the domain as it is."""
        return self if mesh is None else replace(self, mesh=mesh)

    def whole(self) -> MeshData:
        """Return the whole mesh; one from a file or a function is made anew.

        Raises
        ------
        MeshError
            If this rank was given none, or the file is broken.
        """
        if isinstance(self.mesh, MeshData):
            return self.mesh
        if isinstance(self.mesh, str | Path):
            from fluxloom.mesh.io import read
            from fluxloom.mesh.quality.check import check

            data = read(self.mesh)
            with activity("checking the mesh", f"{data.n_cells:,} cells"):
                check(data)
            return data
        if not callable(self.mesh):
            raise MeshError(f"mesh: a mesh, the path of one, or a function that makes it is wanted, not {self.mesh!r}")
        return self.mesh()

    def checked(
        self, context: Context, boundaries: Collection[str], *, joins: bool = True, lacking: bool = False
    ) -> MeshData | None:
        """Return the whole mesh on rank 0, None on others, once its patches fit. Collective.

        Parameters
        ----------
        context
            Whose ranks.
        boundaries
            Names of the patches that have a boundary condition.
        joins
            Whether the flow can join patches; else ``periodic`` and ``sectors`` have to be empty.
        lacking
            Whether patches may lack a condition, as the flow has one for them.

        Raises
        ------
        PatchError
            Unless each patch is joined to another or has a condition, and each name is that of a patch.
        MeshError
            See `whole`; and where the flow joins no patches.
        """
        if not joins and (self.periodic or self.sectors):
            raise MeshError("mesh: this flow joins no patches: leave out periodic and sectors")

        comm = context.comm
        mesh = raise_on_all_ranks(comm, lambda: self.whole() if comm.rank == 0 else None)
        if mesh is not None:
            _warn_of_round_off(mesh)
        wrong = None if mesh is None else self._misfit(mesh, boundaries, joins=joins, lacking=lacking)
        if (wrong := comm.broadcast(wrong)) is not None:
            raise PatchError(wrong)
        return mesh

    def _misfit(self, mesh: MeshData, boundaries: Collection[str], *, joins: bool, lacking: bool) -> Misfit | None:
        """Return what does not fit of names and patches; None: all do."""
        known = list(mesh.patches)
        pairs = {"periodic": self.periodic, "sectors": [(pair.first, pair.second) for pair in self.sectors]}
        joined = {key: [name for pair in given for name in pair] for key, given in pairs.items()}
        paired = {name: key for key, names in joined.items() for name in names}
        listed = ", ".join(known) or "none"
        for key, names in (*joined.items(), ("boundaries", boundaries)):
            for name in names:
                if name not in known:
                    text = f"the mesh has no patch {name!r}{did_you_mean(name, known)} (patches: {listed})"
                    return Misfit(key, name, text)
        for name in known:
            if name in paired and name in boundaries:
                text = f"{paired[name]} names the patch {name!r} too; leave out one of them"
                return Misfit("boundaries", name, text, joined=paired[name])
            if not lacking and name not in paired and name not in boundaries:
                text = f"the patch {name!r} has none (patches: {listed}); give it a condition"
                return Misfit("boundaries", name, text, lacking=True, joins=joins)
        return None


MeshLike = MeshData | str | Path | Domain | None
"""What a flow takes for its mesh."""


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


@dataclass(frozen=True, eq=False)
class FlowDomain:
    """Where a flow in control volumes is.

    Attributes
    ----------
    domain
        What it was made of.
    mesh
        The whole mesh, on one rank; of several ranks None.
    part
        What this rank has of the mesh.
    volumes
        Control volumes of this rank.
    partition
        How the mesh is divided; None on a rank alone.
    """

    domain: Domain
    mesh: MeshData | None
    part: MeshPart
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
        from fluxloom.mesh.ranks.wall_distance import shared_wall_faces, wall_distance

        walls = shared_wall_faces(self.part, patches)
        return wall_distance(self.volumes.centres[: self.volumes.cells], *walls)

    def node_gradients(self, kind: NodeGradients) -> tuple[ControlVolumes, Family]:
        """Return control volumes with all that shares a node with a cell, and the rows of slopes. Collective.

        Raises
        ------
        SolverError
            See `fluxloom.fv.gradients.node_gradients.node_gradients`.
        """
        from fluxloom.fv.geometry.node_rows import NodeRows
        from fluxloom.fv.gradients.node_gradients import shared_node_gradients

        return shared_node_gradients(self.volumes, NodeRows.of_part(self.part, self.volumes), kind)


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
    from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, shared_volumes
    from fluxloom.mesh.ranks.distribute import part_of

    part = part_of(comm, whole, method=domain.method, shares=domain.shares, maps=FLOW_MAPS)
    with activity("control volumes", f"{part.part('cells').owned:,} cells"):
        volumes = shared_volumes(part, [(first, second) for first, second in domain.periodic], domain.sectors)
    return FlowDomain(domain, None if context.distributed else whole, part, volumes, part.report())
