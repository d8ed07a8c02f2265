"""Meshes that are not sound are refused on all ranks, wherever the ranks cut them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import MeshError
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.mesh import MeshData, bind, box2d, box3d
from fluxloom.mesh.data.mesh import PatchFaces
from fluxloom.mesh.geometry.connectivity import connectivity


def moved(mesh: MeshData, node: int, place: list[float]) -> MeshData:
    points = mesh.points.copy()
    points[node] = place
    return mesh.with_points(points)


def mended(mesh: MeshData, cell: int) -> MeshData:
    """Return a mesh with a quad turned round."""
    block = mesh.cells["quad"].copy()
    block[cell] = block[cell][::-1]
    return replace(mesh, cells={"quad": block})


def hanging() -> MeshData:
    points = np.array([[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1], [1, 0.5], [2, 0.5]], dtype=float)
    return MeshData(points, {"quad": np.array([[0, 1, 4, 3], [1, 2, 7, 6], [6, 7, 5, 4]])}, {})


def listed(mesh: MeshData) -> MeshData:
    """Return a mesh with one patch of all its boundary, the faces round hanging nodes too."""
    return replace(mesh, patches={"all": PatchFaces({"line": connectivity(mesh).boundary_nodes.table})})


def changed(row: list[int]) -> MeshData:
    """Return quads of which the last but one has other nodes."""
    block = box2d(4, 4).cells["quad"].copy()
    block[-2] = row
    return replace(box2d(4, 4), cells={"quad": block})


def twice(shift: float) -> MeshData:
    """Return two squares, one moved."""
    first = box2d(4, 4)
    points = np.concatenate([first.points, first.points + np.array([shift, 0.1 * shift])])
    return MeshData(points, {"quad": np.concatenate([first.cells["quad"], first.cells["quad"] + first.n_points])})


MESHES: dict[str, tuple[Callable[[], MeshData], str]] = {
    "folded": (lambda: moved(box2d(4, 4), 12, [0.9, 0.9]), "inverted: it lies over its neighbour"),
    "folded and turned": (lambda: mended(moved(box2d(4, 4), 12, [0.9, 0.9]), 10), "inverted: it lies over"),
    "hanging": (hanging, r"hanging node: node 6 at \(1, 0\.5\)"),
    "hanging, listed": (lambda: listed(hanging()), r"quad element 0: hanging node: node 6 at \(1, 0\.5\)"),
    "repeated": (lambda: changed([17, 18, 18, 22]), r"quad element 14 at \(.*\): degenerate: node 18 is repeated"),
    "not a number": (lambda: moved(box2d(4, 4), 12, [np.nan, 0.5]), r"node 12: its coordinates \(nan, 0\.5\) are not"),
    "one place": (lambda: moved(box2d(4, 4), 12, [0.25, 0.5]), r"quad element \d+ at .* its nodes 1[12] and 1[12] are"),
    "twice": (lambda: twice(0.0), r"quad element \d+ at \(.*overlapping: it lies over others"),
    "twice, by a part": (lambda: twice(0.9), r"quad element \d+ at \(.*overlapping: it lies over others"),
    "concave": (lambda: moved(box3d(2, 2, 2), 13, [0.9, 0.9, 0.9]), "concave or tangled"),
}


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", MESHES)
def test_every_rank_refuses_it(name: str, ranks: int) -> None:
    make, message = MESHES[name]

    def run(comm: Comm) -> Any:
        mesh = bind(make() if comm.rank == 0 else None, fl.Context("reference", comm=comm))
        return LagrangeSpace.on(mesh, 1)

    with pytest.raises(MeshError, match=message):
        run_threads(ranks, run)


def test_cells_numbered_the_other_way_are_taken() -> None:
    box = box2d(6, 5, perturb=0.2)
    block = box.cells["quad"].copy()
    block[::3] = block[::3][:, ::-1]

    def run(comm: Comm) -> int:
        mesh = bind(replace(box, cells={"quad": block}), fl.Context("reference", comm=comm))
        return LagrangeSpace.on(mesh, 1).dofs.size

    assert sum(run_threads(3, run)) == box.n_points
