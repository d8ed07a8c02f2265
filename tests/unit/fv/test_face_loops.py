"""Loops over faces: every way of a loop gives the same, and what they compute is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import MeshError, PlanError
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.fv.compressible.gas import ConstantViscosity, Gas, Sutherland
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.mesh import MeshData, box2d, box3d
from fluxloom_lab.studies.face_loops_form import KINDS, FaceLoops, Work
from fluxloom_lab.studies.face_loops_tables import ORDERS, FaceTables
from fluxloom_lab.studies.face_loops_ways import standard_works, work_of

GAS = Gas(viscosity=Sutherland())
MESHES: dict[str, Callable[[], MeshData]] = {
    "prism": lambda: box3d(3, 2, 2, kind="prism", perturb=0.2),
    "triangle": lambda: box2d(4, 3, kind="triangle", perturb=0.2),
}


def tables_of(mesh: MeshData) -> FaceTables:
    return FaceTables.of(mesh, control_volumes(mesh))


def loops_of(mesh: MeshData, order: Any = "given", device: str = "cpu", uniform: bool = False) -> FaceLoops:
    """Return the loops with a flow with waves, or one that is the same everywhere."""
    volumes = control_volumes(mesh)
    x, d = volumes.centres, volumes.dimension
    waves = np.stack([np.sin(3.0 * x.sum(axis=1) + k) for k in range(d + 2)], axis=1) * (not uniform)
    states = np.array([1.2, *(100.0, 30.0, -20.0)[:d], 1e5]) * (1.0 + 0.1 * waves)
    loops = FaceLoops(fl.Context(device, threads=1, tuning=False), FaceTables.of(mesh, volumes).ordered(order), GAS)
    loops.start(states, 1e-4 * (1.0 + x[:, 0]), 1e3)
    return loops


def run(loops: FaceLoops, work: Work) -> np.ndarray:
    work.clear()
    work()
    return loops.result(work)


def run_all(loops: FaceLoops) -> dict[str, np.ndarray]:
    return {work.kind.name: run(loops, work) for work in standard_works(loops)}


def close(found: np.ndarray, wanted: np.ndarray) -> bool:
    return bool(np.abs(found - wanted).max() <= 1e-12 * np.abs(wanted).max())


@pytest.mark.parametrize(("name", "strategies"), [("prism", ("gather",)), ("triangle", ("atomic", "element_colour"))])
def test_every_way_gives_the_same(name: str, strategies: tuple[str, ...]) -> None:
    """Faces of different numbers of nodes, two and three dimensions; the strategies that a loop can have."""
    loops = loops_of(MESHES[name]())
    wanted = run_all(loops)
    for kind in KINDS:
        for mode in kind.modes:
            allowed = work_of(loops, kind.name, mode).loops[0].races.allowed
            ways = [(False, None), *((False, s) for s in strategies if s in allowed), *[(True, None)] * kind.split]
            for split, strategy in ways:
                work = work_of(loops, kind.name, mode, split=split, schedule=Schedule(strategy=strategy))
                assert close(run(loops, work), wanted[kind.name]), (kind.name, mode, split, strategy)
                assert (len(work.loops) > 1) == split
                assert strategy in (None, work.loops[0].strategy)


@pytest.mark.parametrize("name", MESHES)
def test_every_order_gives_the_same(name: str) -> None:
    mesh = MESHES[name]()
    wanted = run_all(loops_of(mesh))
    for order in ORDERS[1:]:
        loops = loops_of(mesh, order)
        assert (loops.tables.element_order != np.arange(loops.tables.elements)).any()
        found = run_all(loops)
        for kind in wanted:
            assert close(found[kind], wanted[kind]), (order, kind)


def test_the_processor_computes_what_python_does() -> None:
    mesh = box3d(2, 2, 2, perturb=0.2)
    wanted, found = run_all(loops_of(mesh, device="reference")), run_all(loops_of(mesh))
    assert all(close(found[kind], wanted[kind]) for kind in wanted)


def test_gradients_of_a_linear_field() -> None:
    """On cubes, values at inner nodes are exact, and so are gradients of cells with inner nodes only."""
    mesh = box3d(4, 4, 4)
    loops = loops_of(mesh)
    x = control_volumes(mesh).centres
    slope = np.array([[0.1, 0.2, -0.3], [3.0, 1.0, 2.0], [-1.0, 0.5, 4.0], [2.0, 2.0, 1.0], [500.0, -900.0, 200.0]])
    loops.start(np.array([1.2, 10.0, 20.0, 30.0, 1e5]) + x @ slope.T, np.full(len(x), 1e-4))
    run(loops, work_of(loops, "K2"))
    found = run(loops, work_of(loops, "K1")).reshape(len(x), loops.m, 3)
    inside = np.abs(x - 0.5).max(axis=1) < 0.2
    assert inside.sum() == 8
    np.testing.assert_allclose(found[inside, :5], np.broadcast_to(slope, (8, 5, 3)), rtol=1e-10)


@pytest.mark.parametrize("name", MESHES)
def test_uniform_flow_stays(name: str) -> None:
    loops = loops_of(MESHES[name](), uniform=True)
    found = run_all(loops)
    cells = loops.tables.cells
    state = loops.q.read()[0]
    np.testing.assert_allclose(found["K2"].reshape(-1, loops.m), np.tile(state, (loops.tables.nodes, 1)), rtol=1e-14)
    assert np.abs(found["K6"].reshape(-1, loops.nv)[:cells]).max() <= 1e-13 * np.abs(found["flux"]).max()
    np.testing.assert_allclose(found["K4"], 1.0, rtol=1e-14)


def test_what_leaves_a_cell_enters_another() -> None:
    loops = loops_of(MESHES["prism"]())
    found = run_all(loops)
    res = found["K6"].reshape(-1, loops.nv)
    assert np.abs(res.sum(axis=0)).max() <= 1e-13 * np.abs(res).max() * len(res)
    assert np.abs(found["K10"].sum()) <= 1e-13 * np.abs(found["K10"]).max() * len(res)
    diagonal = found["K9"][: loops.tables.elements]
    assert (diagonal > 0.0).all()


def test_extremes_and_limited_pressure() -> None:
    """The pressure at a face, with the limited slope, stays near those around; extremes are those of the cells."""
    loops = loops_of(MESHES["triangle"]())
    found, t = run_all(loops), loops.tables
    p = loops.q.read()[:, 1 + loops.d]
    low, high = p.copy(), p.copy()
    for a, b in t.faces:
        low[[a, b]] = np.minimum(low[[a, b]], p[[b, a]])
        high[[a, b]] = np.maximum(high[[a, b]], p[[b, a]])
    np.testing.assert_array_equal(found["K8"].reshape(-1, 2), np.stack([low, high], axis=1))
    assert 0.0 < found["K4"].min() < 0.99
    assert found["K4"].max() == 1.0


def test_what_a_table_says() -> None:
    """Each dat once, and operations of the kernel; one launch a component where it is split."""
    loops = loops_of(box3d(2, 2, 2))
    faces, elements, cells = len(loops.tables.faces), loops.tables.elements, 8
    work = work_of(loops, "K6")
    assert (faces, elements) == (36, cells + 24)
    assert work.useful_bytes == 8 * 5 * (faces + 2 * elements) + 4 * 2 * faces
    assert work.flops == 10 * faces
    split = work_of(loops, "K6", split=True)
    assert len(split.loops) == 5
    assert split.flops == work.flops
    assert split.useful_bytes == work.useful_bytes + 4 * (4 * 2 * faces)


def test_a_strategy_for_all_where_it_is_possible() -> None:
    loops = loops_of(box2d(2, 2))
    runs = {w.kind.name: w.loops[0].strategy for w in standard_works(loops, Schedule(strategy="atomic"))}
    assert (runs["K1"], runs["K6"], runs["K9"], runs["K7"]) == ("atomic", "atomic", "atomic", "direct")
    assert "atomic" not in (runs["K4"], runs["K8"])
    runs = {w.kind.name: w.loops[0].strategy for w in standard_works(loops, Schedule(strategy="element_colour"))}
    assert set(runs.values()) == {"element_colour", "direct"}


def test_what_is_said_of_a_wrong_way() -> None:
    loops = loops_of(box2d(2, 2))
    with pytest.raises(PlanError, match=r"loop 'K11' is unknown"):
        work_of(loops, "K11")
    with pytest.raises(PlanError, match=r"K8: it cannot run over 'nodes'.*possible: faces, cells"):
        work_of(loops, "K8", "nodes")
    with pytest.raises(PlanError, match=r"K4: it has no components to split \(possible: K2, K1, K6\)"):
        work_of(loops, "K4", split=True)
    with pytest.raises(PlanError, match=r"strategy 'atomic' is not possible: it has Min or Max"):
        work_of(loops, "K8", schedule=Schedule(strategy="atomic"))
    with pytest.raises(MeshError, match=r"order: 'renumberd' is unknown.*did you mean"):
        loops.tables.ordered("renumberd")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="viscosity of Sutherland"):
        FaceLoops(loops.context, loops.tables, Gas(viscosity=ConstantViscosity(1e-5)))
    mesh = box2d(3, 3)
    with pytest.raises(MeshError, match="without periodic patches"):
        FaceTables.of(mesh, control_volumes(mesh, [("xmin", "xmax")]))
