"""Lists of fluid cells on several ranks: the numbers of one rank, and of the whole box, wherever the list is cut."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, FluxloomError, SolverError
from fluxloom.dsl.checkpoint.memory import Memory
from fluxloom.dsl.checkpoint.state import StateFile, write_state
from fluxloom.dsl.plan.plan import Limits, limits_of
from fluxloom.dsl.run.chain import Chain
from fluxloom.lbm.boundaries import (
    Body,
    BounceBack,
    Outflow,
    Pressure,
    RegularisedCells,
    Slip,
    Sponge,
    Velocity,
    Wall,
    ZouHe,
)
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.cells.division import Division, numbers_among
from fluxloom.lbm.cells.labels import labels_of
from fluxloom.lbm.cells.lists import CellList
from fluxloom.lbm.collisions.operators import TRT
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27, Lattice
from fluxloom.lbm.shapes.sets import Union
from fluxloom.lbm.shapes.shapes import Circle, Sphere
from fluxloom.machine.ranks import Starter
from fluxloom.run.results.results import ResultFolder
from fluxloom.solvers.lattice.devices import DividedLattice
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from tests.lattice_names import lattice_flow
from tests.parallel.launch import mpiexec
from tests.parallel.launch import run as start
from tests.parallel.test_lattice_case_ranks import build, case_of, ran, same_files

Values = dict[str, Any]

DISKS = Union(Circle((3.2, 6.1), 2.4), Circle((9.6, 9.4), 2.7), Circle((12.8, 3.7), 1.9))
BED = Union(Sphere((1.2, 2.3, 5.2), 2.2), Sphere((5.1, 5.8, 4.6), 2.4), Sphere((6.8, 0.4, 5.9), 1.7))
DISK = Union(Circle((4.2, 6.1), 2.4), Circle((8.6, 10.4), 2.2))
PLANE, SPACE = (14, 17), (7, 8, 11)


def long(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.long)


def inlet(at: np.ndarray) -> np.ndarray:
    """A velocity along the last axis that differs over the side."""
    assert len(at), "never asked about nothing"
    values = np.zeros(at.shape)
    values[:, -1] = 0.03 + 0.01 * np.sin(0.7 * at[:, 0])
    return values


def channel() -> Values:
    """A channel with an inlet and an outlet through a bed, whose surface is curved."""
    sides: Values = {"xmin": Velocity(inlet), "xmax": Pressure(1.0), "ymin": Wall(measure=True), "ymax": Slip()}
    return {"lattice": D2Q9, "boundaries": sides, "bodies": [Body("bed", DISKS, Wall(interpolated=True, measure=True))]}


def outflow() -> Values:
    """Two outflows that meet, a wall whose torque is wanted.

    What these remember where they meet begins with what is beyond the other one, which a list has nothing for.
    """
    sides: Values = {
        "xmin": Velocity(inlet, scheme=BounceBack()), "ymin": Wall(measure=True), "xmax": Outflow(),
        "ymax": Outflow(speed=0.2),
    }  # fmt: skip
    return {"lattice": D2Q9, "boundaries": sides, "bodies": [Body("bed", DISK, Wall(measure=True, center=(4.0, 4.0)))]}


def edges() -> Values:
    """Sides that all set velocity or pressure, so that corners have conditions, which look two cells far."""
    stream = Velocity((0.0, 0.03))
    sides: Values = {"xmin": stream, "xmax": Pressure(1.0, ZouHe()), "ymin": stream, "ymax": stream}
    return {"lattice": D2Q9, "boundaries": sides, "bodies": [Body("bed", DISK, Wall(measure=True))]}


def sponges() -> Values:
    """An inlet that bounces back and grows, an outlet in a sponge, and moving walls across joined axes."""
    sides: Values = {
        "ymin": Velocity(lambda at: inlet(at)[:, ::-1], scheme=BounceBack(), ramp=4),
        "ymax": Sponge(Pressure(1.01, scheme=RegularisedCells()), 5.0, velocity=(0.02, 0.0)),
    }
    moved = Wall(velocity=lambda at: np.full(at.shape, 0.01), interpolated=True, measure=True)
    return {"lattice": D2Q9, "boundaries": sides, "bodies": [Body("bed", DISKS, moved)]}


def driven(lattice: Lattice = D3Q19) -> Values:
    """A packed bed in a box that is joined along all axes, with a force."""
    return {
        "lattice": lattice, "force": (1e-5, 0.0, 1e-4),
        "bodies": [Body("bed", BED, Wall(interpolated=True, measure=True))],
    }  # fmt: skip


def bed(lattice: Lattice = D3Q19) -> Values:
    """A packed bed between an inlet and an outlet, with walls of all kinds."""
    sides: Values = {
        "xmin": Velocity((0.0, 0.0, 0.03)), "xmax": Outflow(), "ymin": Wall(measure=True),
        "ymax": Wall(velocity=(0.0, 0.0, 0.02)), "zmin": Slip(), "zmax": Pressure(1.0),
    }  # fmt: skip
    curved = Body("bed", BED, Wall(interpolated=True, measure=True))
    return {"lattice": lattice, "boundaries": sides, "bodies": [curved]}


def diagonal() -> Values:
    """A bed that cells meet along the diagonals of the cube, too."""
    return bed(D3Q27)


FLOWS = {f.__name__: f for f in (channel, outflow, edges, sponges, driven, bed, diagonal)}


def run(
    comm: Comm, name: str, cells: str = "fluid", *, device: str = "cpu", steps: tuple[int, ...] = (4,), **more: Any
) -> Values:
    """Return what a rank finds after some steps of a flow that differs from cell to cell."""
    options = {"viscosity": 0.05, "dtype": "float64", "collision": TRT()} | FLOWS[name]() | more
    shape = PLANE if options["lattice"].dimensions == 2 else SPACE
    shape = options.pop("shape", shape)
    ctx = fl.Context(device, threads=1, comm=comm, tuning=False, schedule=fl.Schedule(deterministic="global"))
    flow = lattice_flow(ctx, shape, cells=cells, **options)
    rng = np.random.default_rng(7)
    flow.initialise(1 + 0.01 * rng.random(shape), 0.02 * rng.standard_normal((*shape, len(shape))))
    for count in steps:
        flow.step(count)
    place = zip(flow.grid.offset, flow.grid.shape, shape, strict=True)
    measured = [key for key, part in flow.conditions.parts.items() if part.force is not None]
    return {
        "window": tuple(slice(min(o, m), min(o + n, m)) for o, n, m in place),
        "velocity": flow.velocity(), "density": flow.density(), "forces": {key: flow.force_on(key) for key in measured},
        "totals": np.array(flow.totals()), "mass": flow.mass(), "cells": flow.cells, "own": flow.memory.set.size,
        "links": {key: (part.links, part.halfway) for key, part in flow.conditions.parts.items()},
    }  # fmt: skip


@functools.cache
def alone(
    name: str, cells: str = "fluid", shape: tuple[int, ...] = (), streaming: str = "pull", steps: tuple[int, ...] = (4,)
) -> Values:
    """Return what one rank finds."""
    more: Values = {"shape": shape} if shape else {}
    return run(SelfComm(), name, cells, streaming=streaming, steps=steps, **more)


def check(found: list[Values], *wants: Values) -> None:
    """Check that ranks find what one does, with a list and with all cells: to the last bit, but for sums."""
    one = wants[0]
    seen = np.zeros(one["density"].shape, dtype=int)
    assert np.abs(one["velocity"]).max() > 1e-3
    for each in found:
        seen[each["window"]] += 1
        for want in wants:
            for name in ("velocity", "density"):
                np.testing.assert_array_equal(each[name], want[name][each["window"]], err_msg=name)
            for name, force in want["forces"].items():
                assert np.abs(force).max() > 1e-6
                np.testing.assert_allclose(each["forces"][name], force, rtol=1e-9, atol=1e-14)
            np.testing.assert_allclose(each["totals"], want["totals"], rtol=1e-9, atol=1e-12)
            assert each["mass"] == pytest.approx(want["mass"], rel=1e-13)
            assert each["links"] == want["links"]
        assert each["cells"] == one["cells"] < one["density"].size
    assert (seen == 1).all()
    assert sum(each["own"] for each in found) == one["cells"]


def agree(ranks: int, name: str, streaming: str = "pull", **options: Any) -> list[int]:
    """Check that some ranks find what one finds; return how many cells each has."""
    shape, steps = options.get("shape", ()), options.get("steps", (4,))
    ways = ("fluid",) if name == "outflow" else ("fluid", "all")
    wants = [alone(name, cells, shape, streaming, steps) for cells in ways]
    found = run_threads(ranks, lambda comm: run(comm, name, streaming=streaming, **options))
    check(found, *wants)
    return [each["own"] for each in found]


# ---------------------------------------------------------------------------------------- flows


@pytest.mark.parametrize(
    ("ranks", "name", "streaming"),
    [
        (3, "channel", "pull"), long(2, "driven", "pull"), long(2, "bed", "three-phase"), long(3, "bed", "pull"),
        long(3, "driven", "three-phase"), long(2, "channel", "three-phase"), long(3, "outflow", "pull"),
        long(4, "edges", "pull"), long(3, "sponges", "pull"), long(3, "diagonal", "pull"),
    ],
)  # fmt: skip
def test_what_one_rank_finds(ranks: int, name: str, streaming: str) -> None:
    """To the last bit, with a list on one rank and with all cells; forces and sums to round-off."""
    own = agree(ranks, name, streaming)
    assert max(own) - min(own) <= 2, "pieces of the fluid, not of the box"


@pytest.mark.long
@pytest.mark.parametrize(("name", "streaming"), [("channel", "pull"), ("driven", "pull"), ("sponges", "three-phase")])
def test_odd_numbers_of_steps(name: str, streaming: str) -> None:
    agree(3, name, streaming, steps=(3, 2, 1))


@pytest.mark.parametrize(
    ("ranks", "name"), [(7, "channel"), long(13, "channel"), long(13, "edges"), long(9, "bed"), long(9, "driven")]
)
def test_pieces_thinner_than_a_plane(ranks: int, name: str) -> None:
    """A rank has some rows of a plane, or less than a row of one: it meets many others, and has hardly an interior."""
    agree(ranks, name)


def test_cells_inside_run_while_messages_travel() -> None:
    """A rank in the middle begins with cells behind its first ones: those meet another rank, as its last ones do.

    A message has 3 of 9 numbers of a cell, and hardly more for what walls and slip want to know of neighbours.
    """
    shape = (42, 24)
    agree(3, "channel", shape=shape)

    def look(comm: Comm) -> tuple[Limits, float]:
        ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False, schedule=fl.Schedule(deterministic="global"))
        options: Values = {"viscosity": 0.05, "dtype": "float64", "collision": TRT()} | channel()
        flow = lattice_flow(ctx, shape, cells="fluid", **options)
        flow.initialise()
        flow.step(2)
        part = flow.memory.set.part
        assert part is not None
        assert isinstance(flow.chain, Chain)
        sent = sum(row.nbytes * row.calls for row in flow.chain.exchanges())  # in two steps, of each buffer once
        return limits_of(flow.memory.set, False), sent / (2 * 8 * sum(map(len, part.send)))

    found = run_threads(3, look)
    first, middle, last = (limits for limits, _ in found)
    assert first.begin == 0 < first.inside < first.owned
    assert 0 < middle.begin < middle.inside < middle.owned
    assert 0 < last.begin < last.inside <= last.owned
    assert all(1 < numbers < 3.5 for _, numbers in found)


@pytest.mark.parametrize("name", ["channel", long("edges"), long("bed")])
def test_unequal_shares(name: str) -> None:
    """Each rank gets its share of the fluid."""
    own = agree(3, name, shares=(1.0, 5.0, 2.0))
    np.testing.assert_allclose(np.array(own) / sum(own), [0.125, 0.625, 0.25], atol=0.02)


def test_a_channel_of_a_few_cells() -> None:
    """Ranks with a cell or two, and with none, though each one takes part in all conditions."""
    wall = Wall(interpolated=True, measure=True)

    def few(comm: Comm) -> Values:
        return run(comm, "channel", shape=(5, 6), bodies=[Body("bed", Circle((2.0, 2.6), 1.9), wall)])

    one, found = few(SelfComm()), run_threads(9, few)
    check(found, one)
    assert min(each["own"] for each in found) == 0 < max(each["own"] for each in found) <= 6


@pytest.mark.long
@pytest.mark.parametrize("ranks", [3, 4, 5])
def test_fewer_cells_than_ranks(ranks: int) -> None:
    """Corners between disks are all of the fluid; a rank may have one cell, or none."""

    def few(comm: Comm) -> Values:
        disk = Body("bed", Circle((2.0, 2.0), 2.4))
        return run(comm, "driven", lattice=D2Q9, shape=(5, 5), force=(1e-4, 1e-4), bodies=[disk])

    one, found = few(SelfComm()), run_threads(ranks, few)
    assert one["cells"] == 4
    check(found, one)
    assert min(each["own"] for each in found) == (0 if ranks > 4 else 1)


@pytest.mark.long
@pytest.mark.parametrize("name", ["channel", "bed"])
@pytest.mark.parametrize("layout", [fl.AoS(), fl.Blocked(8)])
def test_layouts(name: str, layout: Any) -> None:
    agree(3, name, layout=layout)


@pytest.mark.long
@pytest.mark.opencl
@pytest.mark.parametrize("name", ["channel", "driven"])
def test_opencl(name: str) -> None:
    """Cells inside are the work items of a launch of their own."""
    more: Values = {"device": "opencl", "shape": (42, 24) if name == "channel" else (24, 8, 11)}
    one = run(SelfComm(), name, **more)
    check(run_threads(3, lambda comm: run(comm, name, **more)), one)


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["channel", "bed", "driven"])
@pytest.mark.parametrize("streaming", ["pull", "three-phase"])
def test_cuda(name: str, streaming: str) -> None:
    more: Values = {"device": "cuda", "streaming": streaming, "shape": (42, 24) if name == "channel" else (24, 8, 11)}
    one = run(SelfComm(), name, **more)
    check(run_threads(3, lambda comm: run(comm, name, **more)), one)


@pytest.mark.long
def test_values_in_and_out() -> None:
    """Arrays go in and come out over the box, or over the window of a rank, whoever has the cells; so does a force."""
    rng = np.random.default_rng(5)
    density, velocity = 1 + 0.1 * rng.random(PLANE), 0.02 * rng.standard_normal((*PLANE, 2))
    push = 1e-3 * rng.standard_normal((*PLANE, 2))

    def values(comm: Comm, parts: bool) -> Values:
        ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        flow = lattice_flow(
            ctx, PLANE, viscosity=0.1, lattice=D2Q9, dtype="float64", cells="fluid", force=(0.0, 1e-4), field=True,
            bodies=[Body("bed", DISKS)],
        )  # fmt: skip
        window = tuple(slice(o, o + n) for o, n in zip(flow.grid.offset, flow.grid.shape, strict=True))
        np.testing.assert_array_equal(
            flow.memory.read(flow.force_field), np.where(flow.fluid[window][..., None], (0.0, 1e-4), 0.0)
        )
        flow.memory.write(flow.force_field, push[window] if parts else push)
        flow.initialise(*((density[window], velocity[window]) if parts else (density, velocity)))
        kept = [flow.density(), flow.velocity(), flow.memory.read(flow.force_field)]
        flow.step(3)
        with pytest.raises(SolverError, match=r"values of shape \(3, 2\) (fit neither|do not fit) the box, \(14, 17\)"):
            flow.memory.write(flow.excess, np.zeros((3, 2)))
        return {"window": window, "values": [*kept, flow.velocity()], "fluid": flow.fluid}

    one = run_threads(1, values, False)[0]
    np.testing.assert_allclose(one["values"][0], np.where(one["fluid"], density, 1.0), atol=1e-14)
    for parts in (False, True):
        for each in run_threads(3, values, parts):
            for found, want in zip(each["values"], one["values"], strict=True):
                np.testing.assert_array_equal(found, want[each["window"]])


@pytest.mark.long
def test_devices_of_one_process() -> None:
    """Two devices of a process have shares of the fluid."""
    options = {"viscosity": 0.05, "dtype": "float64"} | driven()
    flows = []
    for names, shares in ((["cpu:1"], None), (["cpu:1", "cpu:1"], (3.0, 1.0))):
        with DividedLattice(names, SPACE, shares=shares, cells="fluid", **options) as flow:
            flow.initialise()
            flow.step(3)
            flows.append((flow.velocity(), flow.density(), flow.cells, flow.shares))
    np.testing.assert_array_equal(flows[1][0], flows[0][0])
    np.testing.assert_array_equal(flows[1][1], flows[0][1])
    assert flows[1][2] == flows[0][2]
    assert flows[1][3] == pytest.approx((0.75, 0.25), abs=0.01)


@pytest.mark.long
@pytest.mark.parametrize(("name", "after"), [("channel", 3), ("sponges", 4)])
def test_saved_and_restored(name: str, after: int, tmp_path: Path) -> None:
    """A flow that one rank has saved goes on to the same bits on three, one of three on one; in place on one."""

    def begun(comm: Comm, streaming: str) -> LatticeBoltzmann:
        ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False, schedule=fl.Schedule(deterministic="global"))
        flow = lattice_flow(ctx, PLANE, viscosity=0.05, cells="fluid", streaming=streaming, **FLOWS[name]())
        flow.initialise(1.0, (0.0, 0.02))
        return flow

    def saved(comm: Comm, streaming: str, path: Path) -> None:
        flow = begun(comm, streaming)
        flow.step(after)
        write_state(path, comm, Memory(run=flow).state(), {})

    def gone_on(comm: Comm, streaming: str, path: Path) -> Values:
        flow = begun(comm, streaming)
        Memory(run=flow).restore(StateFile(path, comm))
        flow.step(3)
        window = tuple(slice(o, o + n) for o, n in zip(flow.grid.offset, flow.grid.shape, strict=True))
        return {"window": window, "velocity": flow.velocity()}

    for streaming, ranks in (("in-place", (1, 1)), ("pull", (1, 3)), ("three-phase", (3, 1))):
        path, whole = tmp_path / f"{streaming}.npz", begun(SelfComm(), streaming)
        whole.step(after + 3)
        want = whole.velocity()
        run_threads(ranks[0], saved, streaming, path)
        for each in run_threads(ranks[1], gone_on, streaming, path):
            np.testing.assert_array_equal(each["velocity"], want[each["window"]])
    assert np.abs(want).max() > 1e-3


@pytest.mark.long
def test_real_ranks() -> None:
    """Messages of MPI."""
    want = alone("channel")["velocity"]
    done = mpiexec(
        2,
        """
        import numpy as np
        from tests.parallel.test_lattice_lists_ranks import check, run
        from fluxloom.comm.base import SelfComm
        for name in ("channel", "driven"):
            check([one for one in comm.allgather(run(comm, name))], run(SelfComm(), name))
        if comm.rank == 0:
            print("agreed", float(np.abs(run(SelfComm(), "channel")["velocity"]).sum()))
        """,
        timeout=120,
    )
    assert f"agreed {float(np.abs(want).sum())}" in done.stdout


# ---------------------------------------------------------------------------------------- who has what


@pytest.mark.parametrize(
    ("shape", "joined"),
    [((14, 17), (True, True)), ((14, 17), (False, False)), ((3, 17), (False, True)), ((2, 9), (False, False)),
     ((7, 8, 11), (False, True, False)), ((1, 6, 5), (True, False, False))],
)  # fmt: skip
@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_division(shape: tuple[int, ...], joined: tuple[bool, ...], ranks: int) -> None:
    """Each cell has one owner, cells at sides that of the next one inwards; what is said to be alone meets no other."""
    box = Box(shape, joined)
    shapes = [Circle((1.2, 3.1), 1.3)] if len(shape) == 2 else [Sphere((0.4, 3.0, 2.0), 1.4)]
    labels = labels_of(box, shapes)
    division = Division(box, labels, (1.0,) * ranks)
    fluid = np.flatnonzero(labels == 0)
    owner = division.owner(fluid)
    for rank in range(ranks):
        np.testing.assert_array_equal(division.cells(labels, rank), fluid[owner == rank])
    at = np.stack(box.coordinates(fluid), axis=-1)
    for axis, (n, wraps) in enumerate(zip(shape, joined, strict=True)):
        for end, inwards in ((0, 1), (n - 1, n - 2)):
            beside = at[:, axis] == end
            if not wraps and n > 1 and beside.any():
                shift = np.eye(len(shape), dtype=np.int64)[axis] * (inwards - end)
                next_ = box.shifted(fluid[beside], np.broadcast_to(shift, (int(beside.sum()), len(shape))))
                np.testing.assert_array_equal(division.owner(next_), owner[beside])
    for reach in (1, 2):
        for rank in range(ranks):
            mine = fluid[owner == rank]
            sure = mine[division.alone(mine, rank, reach)]
            assert ranks > 1 or sure.size == mine.size
            for shift in np.ndindex((2 * reach + 1,) * len(shape)):
                moved = [x + s - reach for x, s in zip(box.coordinates(sure), shift, strict=True)]
                past = [~np.array(w) & ((x < 0) | (x >= n)) for x, n, w in zip(moved, shape, joined, strict=True)]
                near = box.place(moved)[~np.logical_or.reduce(past)]
                assert (division.owner(near) == rank).all()
    np.testing.assert_array_equal(numbers_among(labels, fluid[::3]), np.arange(fluid.size)[::3])


@pytest.mark.parametrize("lattice", [D2Q9, D3Q19], ids=lambda lattice: lattice.name)
def test_lists_of_parts(lattice: Lattice) -> None:
    """Tables lead to the cells that that of one rank leads to: own ones, those of the halo, and spare places."""
    plane = lattice.dimensions == 2
    box, shapes = (Box(PLANE, (False, True)), [DISKS]) if plane else (Box(SPACE, (True, True, False)), [BED])
    labels = labels_of(box, shapes)
    whole = CellList(box, lattice, labels)
    division = Division(box, labels, (1.0, 2.0, 1.0))

    def build(comm: Comm) -> None:
        mine = CellList(box, lattice, labels, division, comm.rank)
        part = mine.part(comm, labels)
        n, h = mine.cells.size, mine.halo.size
        rows = np.searchsorted(whole.cells, mine.cells)
        known = np.concatenate([mine.cells, mine.halo])
        fluid = whole.ahead[rows] < whole.cells.size
        assert ((mine.ahead < n + h) == fluid).all()
        np.testing.assert_array_equal(known[mine.ahead[fluid]], whole.cells[whole.ahead[rows][fluid]])
        for column, inside in zip(mine.ahead.T, fluid.T, strict=True):
            np.testing.assert_array_equal(column[~inside], n + h + np.arange(np.count_nonzero(~inside)))
        assert mine.spare == (~fluid).sum(axis=0).max()
        np.testing.assert_array_equal(whole.cells[part.numbers], known)
        assert (part.owned, part.stored, part.total) == (n, n + h, whole.cells.size)
        inner = mine.ahead[part.begin : part.inside]
        assert not np.any((inner >= n) & (inner < n + h))
        for rank, places in zip(part.neighbours, part.receive, strict=True):
            assert (division.owner(known[places]) == rank).all()
        np.testing.assert_array_equal(mine.numbers(known), np.arange(n + h))
        beside = mine.halo[:1]
        assert mine.shifted(beside, np.zeros((1, box.dimensions), dtype=np.int64)).tolist() == [n]
        with pytest.raises(SolverError, match="next to a cell of another rank is not known here"):
            mine.shifted(beside, np.array([lattice.velocities[1]]))
        with pytest.raises(SolverError, match="not stored: it is no fluid, or this rank has none of its neighbours"):
            mine.numbers(np.setdiff1d(whole.cells, known)[:1])

    run_threads(3, build)


# ---------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"streaming": "in-place"}, r"streaming=InPlace\(\) runs on one rank, here are 2: .*Pull\(\) or ThreePhase"),
        ({"streaming": "push"}, r"FluidCells\(\) with streaming=Push\(\) runs on one rank, here are 2: .*AllCells\(\)"),
        ({"shares": (1.0,)}, r"there are 2 ranks, give one positive number for each"),
        ({"shares": (1.0, -1.0)}, "positive number"),
    ],
)
def test_what_is_refused(options: Values, message: str) -> None:
    def build(comm: Comm) -> str:
        ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        with pytest.raises(FluxloomError, match=message) as raised:
            lattice_flow(ctx, PLANE, viscosity=0.1, cells="fluid", **(channel() | options))
        return str(raised.value)

    assert len(set(run_threads(2, build))) == 1


# ---------------------------------------------------------------------------------------- cases

LISTED: Values = {"precision": "float64", "cells": "fluid"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "ranks", "pictures"), [("cylinder", 3, False), ("cylinder", 2, True), ("taylor_green", 3, True)]
)
def test_cases(name: str, ranks: int, pictures: bool, tmp_path: Path) -> None:
    """Fields, history, probes, sums, pictures, films and checkpoints are those of one rank, and of all cells."""
    case, all_cells = case_of(name, lattice=LISTED), case_of(name)
    folders = [tmp_path / word for word in ("one", "box", "ranks")]
    for folder in folders:
        folder.mkdir()
    one, box = ran(SelfComm(), folders[0], case, pictures), ran(SelfComm(), folders[1], all_cells, pictures)
    found = run_threads(ranks, ran, folders[2], case, pictures)
    for each in found:
        np.testing.assert_allclose(each["rows"], one["rows"], rtol=1e-9, atol=1e-13)
        assert each["files"] == one["files"]
        assert each["residual"] == pytest.approx(one["residual"], rel=1e-8)
        assert each["summary"].keys() == one["summary"].keys()
    for key, values in one["fields"].items():
        np.testing.assert_allclose(found[0]["fields"][key], values, rtol=0, atol=1e-12, err_msg=key)
    same_files(folders[0], folders[2], one["files"])
    same_files(folders[1], folders[2], box["files"])
    report = found[0]["partition"]
    assert report.method == "pieces of the list of fluid cells"
    assert sum(report.sets[0].owned) == report.sets[0].total == np.count_nonzero(one["fields"]["fluid"])
    assert report.imbalance < 0.02
    assert found[0]["lost"][1] == one["lost"][1] == 1


@pytest.mark.long
def test_cases_go_on_with_other_ranks(tmp_path: Path) -> None:
    """One rank is cut off; three go on from its checkpoint, and one from theirs."""
    case = case_of("cylinder", lattice=LISTED)
    folders = [tmp_path / word for word in ("whole", "cut")]
    for folder in folders:
        folder.mkdir()

    def cut_off(comm: Comm, until: int) -> None:
        runner = build(comm, case)
        runner.begin(ResultFolder(folders[1] if comm.rank == 0 else None))
        while runner.flow.steps < until:
            runner.advance()

    one = ran(SelfComm(), folders[0], case)
    cut_off(SelfComm(), 8)
    run_threads(3, cut_off, 15)
    found = ran(SelfComm(), folders[1], case)
    np.testing.assert_allclose(found["rows"], one["rows"], rtol=1e-9, atol=1e-13)
    for name, values in one["fields"].items():
        np.testing.assert_allclose(found["fields"][name], values, rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("cylinder in-place", {}, r"lattice\.streaming: 'in-place' with lattice\.cells = 'fluid' runs on one rank"),
        ("cylinder", {"partition": {"cut": [1, 2]}}, r"partition\.cut: with lattice\.cells = .*partition\.shares"),
        long("cylinder", {"probes": {"points": [[5.0, 4.6]]}}, r"probes: the probe at \(5\.0, 4\.6\) is in a body"),
    ],
)
def test_what_cases_refuse(name: str, changes: Values, message: str) -> None:
    """Each with one message, the same on every rank, that names the key."""
    case = case_of(name, lattice=LISTED, **changes)

    def refused(comm: Comm) -> str:
        with pytest.raises(CaseError, match=message) as error:
            build(comm, case)
        return str(error.value)

    assert len(set(run_threads(2, refused))) == 1


@pytest.mark.long
def test_command_line(launcher: Starter, tmp_path: Path) -> None:
    """``mpiexec -n 2 fluxloom run case.toml`` of a list of cells writes what one rank writes."""
    case = tmp_path / "bed.toml"
    case.write_text(CASE, encoding="utf-8")
    words = ["-m", "fluxloom", "run", str(case), "--device", "cpu", "--threads", "1"]
    tables = []
    for ranks in (1, 2):
        out = tmp_path / f"out{ranks}"
        command = [*words, "--output", str(out)]
        command = launcher.command(ranks, command) if ranks > 1 else [sys.executable, *command]
        done = start(command, {**launcher.environment(), "OMP_NUM_THREADS": "1"}, 120)
        assert done.returncode == 0, done.stdout + done.stderr
        (folder,) = {path.parent for path in out.rglob("history.csv")}
        told = (folder / "run.json").read_text(encoding="utf-8")
        assert (ranks == 2) == ("pieces of the list of fluid cells" in told)
        tables.append(np.genfromtxt(folder / "history.csv", delimiter=",", skip_header=1))
        assert (folder / "final.vti").exists()
    np.testing.assert_allclose(tables[1], tables[0], rtol=1e-7, atol=1e-12)


CASE = """
[case]
name = "bed"
solver = "lattice"
[run]
iterations = 12
[mesh]
nx = 30
ny = 20
spacing = 0.1
[fluid]
viscosity = 0.05
force = [0.2, 0.0]
[reference]
velocity = 1.0
length = 1.0
[lattice]
cells = "fluid"
[body.one]
shape = "circle"
center = [0.9, 0.8]
diameter = 1.1
condition = "interpolated"
[body.two]
shape = "circle"
center = [2.2, 1.4]
diameter = 0.9
[forces.one]
[history]
every = 4
[output]
image = true
"""
