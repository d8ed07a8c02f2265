r"""Constant operators of the edges of triangles and tetrahedra: assembled once, gathered by points ever after.

For linear elements the integrals of products of shape functions and their gradients are known once the mesh is. Those
of each pair of points ``I != J`` with a common edge are packed side by side, 9 numbers in the plane and 16 in space:
see `fluxloom.fe.edges.kernels`. The pairs are the entries of a ragged map from points to neighbours, both ``IJ`` and
``JI``, so that a loop over points gathers what it needs and no two points write the same value. Each point is among its
neighbours too: a matrix that is filled from the operators has the same map.

Of a mesh that is divided by its points each rank has complete rows of those that it owns. It assembles its cells, in
the order of the whole mesh and by the loops of one rank, and keeps the rows of its own points. Rows keep the order of
their entries, whatever the number of ranks is, so that what is gathered from neighbours is the same to the bit with
``Schedule(deterministic="global")``.

Source: R. Codina, A. Folch, International Journal for Numerical Methods in Fluids 44 (2004) 483-503 (nodal
implementation); the packing of both directions in compressed rows is that of edge-based codes on graphics processors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.activity import activity
from fluxloom.core.dtypes import Layout, SoA
from fluxloom.core.errors import MeshError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import RaggedMap, entries_of
from fluxloom.dsl.declare.ragged import RaggedLayout
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.edges.kernels import edge_integrals, laplacian, lumped_mass, strong_gradient
from fluxloom.fe.edges.point_mesh import SIMPLEX, PointMesh
from fluxloom.graph.csr import Csr, pair_entries
from fluxloom.kernel.frontend import Kernel
from fluxloom.mesh.data.mesh import IntArray, MeshData
from fluxloom.mesh.quality.sound import fit_links

__all__ = ["EdgeOperators", "operators_on", "shared_edge_operators"]


@dataclass(frozen=True, eq=False)
class EdgeOperators:
    """Integrals of linear shape functions on the edges of a mesh; make them with `of`.

    Attributes
    ----------
    points
        The points of the mesh as a set, in the order of the mesh.
    neighbours
        Point -> the points at the other ends of its edges and itself, ascending.
    entries
        The packed numbers, shape ``(9,)`` or ``(16,)``, on ``neighbours.entries``; see `fluxloom.fe.edges.kernels`.
    mass
        Lumped mass ``M_I = sum_J int N_I N_J`` of each point, ``J = I`` included; m^d. Their sum is the volume.
    dimension
        ``d``, 2 or 3.
    """

    points: Set
    neighbours: RaggedMap
    entries: Dat
    mass: Dat
    dimension: int

    @classmethod
    def of(
        cls,
        context: Context,
        mesh: MeshData,
        *,
        points: Set | None = None,
        layout: RaggedLayout | None = None,
        storage: Layout | None = None,
        schedule: Schedule | None = None,
    ) -> EdgeOperators:
        """Assemble the operators of a mesh: a loop over its cells that increments the entries.

        Parameters
        ----------
        context
            Where they live; one of a single rank.
        mesh
            Triangles in two dimensions or tetrahedra in three.
        points
            The set of its points, such as ``bind(mesh, context).nodes``; a new one by default.
        layout
            How rows of neighbours are stored. Others than `CSR` leave only colours and atomic additions for the
            increments.
        storage
            Of the numbers of an entry: by default those of an edge side by side; ``SoA()`` puts one of all edges
            together.
        schedule
            How the loops of assembly run; by default as the cost model says.

        Raises
        ------
        MeshError
            For other cells than simplices of one kind, points that no cell uses, cells without volume, turned inside
            out or given twice (the message names the cell), and a context of several ranks.
        DatError
            For a cell with a point that does not exist.
        SolverError
            When ``points`` is not a set of the points of the mesh in this context.
        """
        block = _block(context, mesh)
        with activity("edges of the mesh", f"{len(block):,} cells"):
            pairs = pair_entries(block, mesh.n_points)
            graph = pairs.graph
            _check(mesh, graph)
        own = points if points is not None else context.set(mesh.n_points, "points")
        if own.context is not context or own.size != mesh.n_points or own.position is not None:
            raise SolverError(
                f"edge operators: {own} is not the set of the {mesh.n_points} points of {mesh.source.path}"
            )
        d = mesh.dimension
        neighbours = context.ragged(own, own, graph.offsets, graph.indices, "neighbours", layout)
        entries = context.dat(neighbours.entries, name="edge_operators", shape=(1 + d * d + 2 * d,), layout=storage)
        mass = context.dat(own, name="lumped_mass")
        cells = context.set(len(block), "cells")
        corners = context.map(cells, own, block, "cell_points")
        edges = context.map(cells, neighbours.entries, pairs.table, "cell_edges")
        x = corners.argument(context.dat(own, mesh.points, "x"))
        for kernel, result in ((edge_integrals, entries[edges]), (lumped_mass, mass[corners])):
            Loop(kernel, cells, x, result, schedule=schedule, name=kernel.name, d=d)()
        return cls(own, neighbours, entries, mass, d)

    def strong_gradient(self, p: Dat, gradient: Dat, schedule: Schedule | None = None) -> Loop:
        r"""Return the loop :math:`\pi_I = \int N_I \nabla p = \sum_J \nabla_{IJ} (p_J - p_I)`.

        Divided by `mass` it is the gradient at the points, exact for linear ``p``, on the boundary too.

        Parameters
        ----------
        p
            Scalars on `points`.
        gradient
            The result, shape ``(d,)`` on `points`.
        schedule
            How the loop runs; by default the cost model and the tuning file decide.

        Raises
        ------
        SolverError
            If a dat does not fit.
        """
        return self._loop(strong_gradient, p, gradient, (self.dimension,), schedule)

    def laplacian(self, u: Dat, result: Dat, schedule: Schedule | None = None) -> Loop:
        r"""Return the loop :math:`\int \nabla N_I \cdot \nabla u = \sum_J L_{IJ} (u_J - u_I)`, minus the Laplacian.

        Parameters
        ----------
        u, result
            Scalars on `points`, not the same dat.
        schedule
            See `strong_gradient`.

        Raises
        ------
        SolverError
            If a dat does not fit.
        """
        return self._loop(laplacian, u, result, (), schedule)

    def _loop(
        self, kernel: Kernel, values: Dat, result: Dat, shape: tuple[int, ...], schedule: Schedule | None
    ) -> Loop:
        """Return a loop over the points that gathers differences of scalars."""
        for dat, wanted in ((values, ()), (result, shape)):
            if dat.set is not self.points or dat.shape != wanted:
                raise SolverError(
                    f"edge_operators.{kernel.name}: {dat.name!r} has shape {dat.shape} on {dat.set}; give shape "
                    f"{wanted} on {self.points}"
                )
        if values is result:
            raise SolverError(f"edge_operators.{kernel.name}: {values.name!r} is read and written: give another result")
        rows = self.entries[self.neighbours.to_entries]
        return Loop(
            kernel, self.points, rows, values[self.neighbours], values, result, schedule=schedule,
            name=f"edge_operators.{kernel.name}", d=self.dimension,
        )  # fmt: skip


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
        From `fluxloom.fe.edges.point_mesh.point_mesh`; its ``points`` are those of the operators.
    layout, storage, schedule
        As `EdgeOperators.of` takes them.

    Raises
    ------
    MeshError
        On every rank, see `EdgeOperators.of`; and when a rank has no points.
    """
    context = mesh.context
    if not context.distributed:
        return EdgeOperators.of(
            context, mesh.mesh.data, points=mesh.points, layout=layout, storage=storage, schedule=schedule
        )
    found, order = raise_on_all_ranks(context.comm, lambda: _assembled(mesh, schedule))
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
        raise MeshError(f"mesh: what fluxloom.fe.edges.point_mesh.point_mesh(context, data) returns, not {mesh!r}")
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


def _block(context: Context, mesh: MeshData) -> IntArray:
    """Return the cells of a mesh of simplices."""
    kind, path = SIMPLEX[mesh.dimension], mesh.source.path
    found = [name for name, count in mesh.cell_counts.items() if count]
    if found != [kind]:
        raise MeshError(
            f"{path}: edge operators in {mesh.dimension} dimensions need cells of the kind {kind} alone, and the mesh "
            f"has {' and '.join(found) or 'no cells'}; divide the cells, or make a mesh of simplices"
        )
    if context.distributed:
        raise MeshError(
            f"{path}: edge operators of a whole mesh are made on one rank, not on {context.comm.size}: take "
            "shared_edge_operators"
        )
    return mesh.cells[kind]


def _check(mesh: MeshData, graph: Csr) -> None:
    """Refuse points that have themselves for their only neighbour, and cells that are wrong by themselves."""
    lonely = np.flatnonzero(np.diff(graph.offsets) == 1)
    if lonely.size:
        raise MeshError(
            f"{mesh.source.path}: no cell uses point {int(lonely[0])} ({lonely.size} such points); remove them from "
            "the points and renumber the cells and patches"
        )
    fit_links(mesh)
