"""The cavity of tetrahedra that the benchmark of flow on edges steps through: meshes and steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from fluxloom.core.dtypes import SoA
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.fe.edges.operators import EdgeOperators, shared_edge_operators
from fluxloom.fe.edges.point_mesh import PointMesh, point_mesh
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.status import Stop
from fluxloom.mesh import box3d, read_data
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom_lab.bench.base import count_from_text
from fluxloom_lab.bench.options import Laid, cells_option, iterations_option, rounds_option
from fluxloom_lab.options import option
from fluxloom_lab.problems.lid_cavity import lid_walls
from fluxloom_lab.problems.tetra_cavity import TetraCavity

__all__ = ["NAMED", "Cavity", "cavities", "cavity_flow"]

VISCOSITY = 0.01
END = 0.1
"""Time that the published runs reach in their steps, s."""

_PERTURB, _MOST = 0.1, 256
_GROWTH = np.log(5400 / 500) / np.log(56 / 14)


@dataclass(frozen=True)
class _Size:
    """Intervals a side of the box, steps to the end, and the tolerance of the pressure."""

    side: int
    steps: int
    rtol: float


NAMED: Mapping[str, _Size] = MappingProxyType(
    {"3k": _Size(14, 500, 1e-6), "24k": _Size(28, 1500, 1e-7), "185k": _Size(56, 5400, 1e-8)}
)
"""Boxes with the numbers of points of the published meshes, their steps, and tolerances for their iterations."""


@dataclass(frozen=True, eq=False)
class Cavity:
    """A mesh in a context, with its operators.

    Attributes
    ----------
    name
        As on the command line.
    mesh, operators
        What flows are made of.
    dt
        Length of the steps; s.
    rtol
        Tolerance of the pressure, relative to the right-hand side.
    """

    name: str
    mesh: PointMesh
    operators: EdgeOperators
    dt: float
    rtol: float

    @property
    def edges(self) -> int:
        """Pairs of points with a common edge."""
        return (self.operators.neighbours.entries.size - self.mesh.points.size) // 2


@dataclass(frozen=True)
class EdgeFlowOptions(Laid):
    """Options of the benchmark ``edge_flow``."""

    nodes: str = option("", metavar="N,...", help="Numbers of points: 3k,24k,185k.")
    cells: str = cells_option("Intervals a side of the box, several with commas.", "N,...")
    mesh: str = option("", metavar="FILE", help="Mesh of a file, in place of a box.")
    iterations: int = iterations_option()
    rounds: int = rounds_option()
    model: str = option("", metavar="NAME", help="flow, or transport in it.")
    preconditioner: str = option("", metavar="NAMES", help="Of the pressure: jacobi, smoothed_aggregation.")
    tune: bool = option(False, help="Time tuned loops too, beside the others.")


def cavities(options: EdgeFlowOptions, context: Context) -> list[Callable[[], Cavity]]:
    """Return what makes the cavity of each size, or that of a file.

    Raises
    ------
    CaseError
        For sizes that are none, or several options that give one.
    """
    given = [name for name in ("nodes", "cells", "mesh") if getattr(options, name)]
    if len(given) > 1:
        raise CaseError(f"--{given[0]} and --{given[1]} both give the mesh: leave one of them out")
    storage = options.chosen_layout or SoA()

    def made(name: str, mesh: MeshData, steps: float, rtol: float) -> Cavity:
        points = point_mesh(context, TetraCavity(mesh).mesh)
        operators = shared_edge_operators(points, storage=storage)
        return Cavity(name, points, operators, END / steps, rtol)

    if options.mesh:
        mesh = read_data(options.mesh)
        size = _of_side(max(2, round(mesh.n_points ** (1.0 / 3.0)) - 1))
        return [lambda: made(options.mesh, mesh, size.steps, size.rtol)]
    words = (options.nodes or options.cells or "3k").split(",")
    sizes = [(word.strip(), _size(word.strip(), points=not options.cells)) for word in words]

    def box(name: str, size: _Size) -> Callable[[], Cavity]:
        n = size.side
        return lambda: made(name, box3d(n, n, n, kind="tetra", perturb=_PERTURB), size.steps, size.rtol)

    return [box(name, size) for name, size in sizes]


def _size(word: str, *, points: bool) -> _Size:
    """Return the box of a number of points, or of intervals a side.

    Raises
    ------
    CaseError
        If it is no such number.
    """
    if points:
        if word.lower() in NAMED:
            return NAMED[word.lower()]
        side = round(max(count_from_text(word), 0) ** (1.0 / 3.0)) - 1
    else:
        side = int(word) if word.isascii() and word.isdigit() else 0
    if not 2 <= side <= _MOST:
        option, wanted = ("nodes", "points, as 3k, 24k or 185k") if points else ("cells", "intervals a side of the box")
        raise CaseError(f"--{option} {word!r}: numbers of {wanted} are wanted, from 2 to {_MOST} intervals a side")
    return _of_side(side)


def _of_side(side: int) -> _Size:
    """Return a size with steps between those of the published ones."""
    known = [size for size in NAMED.values() if size.side == side]
    return known[0] if known else _Size(side, max(1, round(500 * (side / 14) ** _GROWTH)), 1e-7)


def cavity_flow(cavity: Cavity, recipe: Preconditioner) -> EdgeFlow:
    """Return the flow at rest under the lid, Re = 100."""
    sides = lid_walls(cavity.mesh.patches, 3)
    flow = EdgeFlow(
        cavity.mesh, VISCOSITY, sides, preconditioner=recipe, operators=cavity.operators, stop=Stop(rtol=cavity.rtol)
    )
    flow.initialise((0.0, 0.0, 0.0))
    return flow
