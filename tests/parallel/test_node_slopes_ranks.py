"""Slopes through nodes on several ranks: the rows of one rank bit for bit, and its states."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.boundary import FarField, SlipWall
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.fv.geometry.node_rows import NodeRows
from fluxloom.fv.geometry.volumes import ControlVolumes, Family
from fluxloom.fv.gradients.node_gradients import NodeGradients, node_gradients, shared_node_gradients
from fluxloom.mesh import MeshData, box2d, box3d
from fluxloom.mesh.geometry.dual import dual
from fluxloom.mesh.ranks.distribute import part_of
from fluxloom.solvers.compressible.flow import CompressibleFlow

MESHES = {
    "triangle": lambda: box2d(6, 5, kind="triangle", perturb=0.2),
    "prism": lambda: box3d(3, 4, 3, kind="prism", perturb=0.1),
    "tetra": lambda: box3d(3, 3, 3, kind="tetra", perturb=0.1),
    "polyhedra": lambda: dual(box3d(3, 3, 2, kind="tetra", perturb=0.1)),
}


def slopes_of(comm: Comm, mesh: MeshData, kind: NodeGradients) -> tuple[ControlVolumes, Family]:
    """Return this rank's control volumes and the rows of its cells."""
    if comm.size == 1:
        volumes = control_volumes(mesh)
        return volumes, node_gradients(mesh, volumes, kind)
    part = part_of(comm, mesh, method="rcb", maps=FLOW_MAPS)
    volumes = shared_volumes(part)
    return shared_node_gradients(volumes, NodeRows.of_part(part, volumes), kind)


@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize("kind", ["green-gauss", "least-squares"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_rows_of_one_rank(name: str, kind: NodeGradients, ranks: int) -> None:
    mesh = MESHES[name]()
    _, whole = slopes_of(SelfComm(), mesh, kind)
    seen, further = 0, 0
    for volumes, rows in run_threads(ranks, lambda comm: slopes_of(comm, mesh, kind)):
        shared = volumes.shared
        number = np.empty(shared.element_order.size, dtype=np.int64)
        number[shared.element_order] = shared.elements.numbers
        for k in range(volumes.owned):
            mine = slice(rows.offsets[k], rows.offsets[k + 1])
            span = slice(whole.offsets[number[k]], whole.offsets[number[k] + 1])
            np.testing.assert_array_equal(number[rows.columns[mine]], whole.columns[span])
            np.testing.assert_array_equal(rows.values[mine], whole.values[span])
        seen += volumes.owned
        further += shared.element_order.size - volumes.elements
        assert shared.elements.inside > 0
    assert seen == whole.offsets.size - 1
    assert further > 0


def run(comm: Comm, mesh: MeshData, kind: NodeGradients) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and states of the cells of this rank after some steps."""
    volumes, rows = slopes_of(comm, mesh, kind)
    d = mesh.dimension
    sides = {name: FarField([1.0, 0.4, *[0.0] * (d - 1), 1.0]) for name in volumes.patches} | {"ymin": SlipWall()}
    flow = CompressibleFlow(fl.Context("cpu", comm=comm, tuning=False, threads=1), volumes, sides, gradients=rows)
    bump = lambda x: 1.0 + 0.2 * np.exp(-20.0 * ((x - 0.5) ** 2).sum(axis=1))  # noqa: E731
    flow.start(lambda x: np.column_stack([bump(x), np.tile([0.4, *[0.0] * (d - 1)], (len(x), 1)), bump(x)]))
    flow.iterate(3)
    shared = volumes.shared
    return shared.cells.numbers[: shared.cells.owned], flow.states()


@pytest.mark.parametrize(
    ("name", "kind", "ranks"),
    [("triangle", "least-squares", 3), *(pytest.param(*case, marks=pytest.mark.long) for case in (
        ("triangle", "green-gauss", 2), ("tetra", "least-squares", 2), ("polyhedra", "least-squares", 3),
        ("polyhedra", "green-gauss", 2)))],
)  # fmt: skip
def test_states_of_one_rank(name: str, kind: NodeGradients, ranks: int) -> None:
    mesh = MESHES[name]()
    alone = run_threads(1, lambda comm: run(comm, mesh, kind))[0][1]
    found = np.full_like(alone, np.nan)
    for number, values in run_threads(ranks, lambda comm: run(comm, mesh, kind)):
        found[number] = values
    np.testing.assert_allclose(found, alone, rtol=1e-12, atol=1e-14)


def test_every_rank_hears_what_cannot_be() -> None:
    mesh = box2d(6, 4)

    def work(comm: Comm, periodic: list[tuple[str, str]], kind: str) -> None:
        part = part_of(comm, mesh, method="rcb", maps=FLOW_MAPS)
        volumes = shared_volumes(part, periodic)
        shared_node_gradients(volumes, NodeRows.of_part(part, shared_volumes(part)), kind)  # type: ignore[arg-type]

    with pytest.raises(SolverError, match="periodic patches have two places"):
        run_threads(2, lambda comm: work(comm, [("ymin", "ymax")], "green-gauss"))
    with pytest.raises(SolverError, match="'least-square' is unknown; did you mean 'least-squares'"):
        run_threads(2, lambda comm: work(comm, [], "least-square"))
