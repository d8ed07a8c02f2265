"""Walls, sides and bodies of lattice Boltzmann on several ranks: what one rank finds, wherever the lattice is cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Chain, Loop, Read, Write
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import LoopError, SolverError
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.slots import SlotMap
from fluxloom.lbm.boundaries import Body, BounceBack, Outflow, Pressure, Slip, Sponge, Velocity, Wall, ZouHe
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27, Lattice
from fluxloom.lbm.shapes.shapes import Circle, Sphere
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from tests.lattice_names import lattice_flow
from tests.parallel.launch import mpiexec

Values = dict[str, Any]


def long(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.long)


def inlet(at: np.ndarray) -> np.ndarray:
    """A velocity along the last axis that differs over the side."""
    assert len(at), "never asked about nothing"
    values = np.zeros(at.shape)
    values[:, -1] = 0.03 + 0.01 * np.sin(0.7 * at[:, 0])
    return values


def channel(body: Any, dimensions: int) -> Values:
    """All kinds of sides but outflow; edges where pressure and velocity meet are not among them."""
    sides: Values = {"xmin": Velocity(inlet), "xmax": Pressure(1.0), "ymin": Wall(measure=True), "ymax": Slip()}
    if dimensions == 3:
        sides |= {"zmin": Wall(velocity=(0.0, 0.0, 0.02), measure=True), "zmax": Slip()}
    return {"boundaries": sides, "bodies": [Body("body", body, Wall(interpolated=True, measure=True))]}


def outflow(body: Any, dimensions: int) -> Values:
    """Two outflows that meet, a velocity and a pressure on cells that meet, a wall whose torque is wanted."""
    sides: Values = {"xmin": Velocity(inlet), "ymin": Pressure(1.0, scheme=ZouHe()), "xmax": Outflow(), "ymax": Outflow(speed=0.2)}  # fmt: skip  # noqa: E501
    center = (4.0,) * dimensions
    return {"boundaries": sides, "bodies": [Body("body", body, Wall(measure=True, center=center))]}


def bounced(body: Any, dimensions: int) -> Values:
    """Sides that are bounced back at, and a body across a periodic side, on which walls move."""
    sides: Values = {"xmin": Velocity(inlet, scheme=BounceBack()), "xmax": Pressure(1.01)}
    moved = Wall(velocity=lambda at: np.full(at.shape, 0.01), interpolated=True, measure=True)
    return {"boundaries": sides, "bodies": [Body("body", body, moved)]}


def sponged(body: Any, dimensions: int) -> Values:
    """Layers that change what has left cells on its way to others, beside sides that slip."""
    along = (*(0.0,) * (dimensions - 1), 0.04)
    sides: Values = {"xmin": Velocity(inlet), "xmax": Sponge(Pressure(1.0), width=5, velocity=along)}
    sides |= {"ymin": Slip(), "ymax": Sponge(Slip(), width=4)}
    return {"boundaries": sides, "bodies": [Body("body", body, Wall(measure=True))]}


CASES: dict[str, Callable[[Any, int], Values]] = {
    "channel": channel, "outflow": outflow, "bounced": bounced, "sponged": sponged,
}  # fmt: skip

AHEAD = ("push", "in-place")
"""Streaming that writes to other cells, which may be other ranks'."""

CUTS = ((2, 1), (1, 2), (2, 2), (3, 1), (1, 3), (6, 1), (1, 7))
"""The last ones leave parts of two cells."""


def run(
    comm: Comm, name: str, lattice: Lattice, shape: tuple[int, ...], *, cut: Any = None, device: str = "cpu",
    steps: tuple[int, ...] = (4,), singly: bool = False, **options: Any,
) -> Values:  # fmt: skip
    """Return what a rank finds after some steps of a flow that differs from cell to cell; ``singly``: loop by loop."""
    rng = np.random.default_rng(7)
    middle = tuple(0.45 * n for n in shape)
    round_ = (Circle if lattice.dimensions == 2 else Sphere)((0.5, *middle[1:]) if name == "bounced" else middle, 2.2)
    ctx = fl.Context(device, threads=1, comm=comm, tuning=False, schedule=fl.Schedule(deterministic="global"))
    chosen = {"viscosity": 0.05, "dtype": "float64"} | CASES[name](round_, lattice.dimensions) | options
    flow = lattice_flow(ctx, shape, lattice=lattice, cut=cut, **chosen)
    flow.initialise(1 + 0.01 * rng.random(shape), 0.02 * rng.standard_normal((*shape, lattice.dimensions)))
    for count in steps:
        if singly:
            single_steps(flow, count)
        else:
            flow.step(count)
    if flow.conditions.parts["xmin"].links and "xmin" in chosen["boundaries"]:
        flow.conditions.parts["xmin"].assign((0.0,) * (lattice.dimensions - 1) + (0.02,))
        flow.step(2)
    place = zip(flow.grid.offset, flow.grid.shape, shape, strict=True)
    measured = [key for key, part in flow.conditions.parts.items() if part.force is not None]
    torque = flow.conditions.parts["body"].torque
    return {
        "window": tuple(slice(o, min(o + n, m)) for o, n, m in place),
        "velocity": flow.velocity(),
        "density": flow.density(),
        "forces": {key: flow.force_on(key) for key in measured} | ({} if torque is None else {"torque": torque.value}),
        "mass": flow.mass(),
        "links": {key: (part.links, part.halfway) for key, part in flow.conditions.parts.items()},
    }  # fmt: skip


def single_steps(flow: LatticeBoltzmann, count: int) -> None:
    """Do steps without a chain."""
    for _ in range(count):
        for part in flow.parts_of_step(flow.steps % 2):
            for step in part:
                step()
        flow.steps += 1


def agree(ranks: int, *arguments: Any, sums: bool = False, **options: Any) -> None:
    """Check that some ranks find what one finds: to the last bit, but for what depends on sums."""
    one = run(SelfComm(), *arguments, **{k: v for k, v in options.items() if k != "cut"})
    found = run_threads(ranks, lambda comm: run(comm, *arguments, **options))
    check(one, found, sums)
    assert one["mass"] == pytest.approx(np.prod(one["density"].shape), rel=0.3)


def check(one: Values, found: list[Values], sums: bool) -> None:
    seen = np.zeros(one["density"].shape, dtype=int)
    assert one["forces"]
    for each in found:
        seen[each["window"]] += 1
        for name in ("velocity", "density"):
            want = one[name][each["window"]]
            np.testing.assert_allclose(each[name], want, rtol=0, atol=1e-13 if sums else 0, err_msg=name)
        for name, force in one["forces"].items():
            assert np.abs(force).max() > 1e-6
            np.testing.assert_allclose(each["forces"][name], force, rtol=1e-9, atol=1e-14, err_msg=name)
        assert each["links"] == one["links"]
        assert each["mass"] == pytest.approx(one["mass"], rel=1e-13)
    assert (seen == 1).all()


@pytest.mark.parametrize(
    ("ranks", "cut"), [(4, (2, 2)), long(2, (1, 2)), long(3, (3, 1)), long(2, (2, 1)), long(6, (3, 2))]
)
def test_channel_with_a_body_across_a_cut(ranks: int, cut: Any) -> None:
    agree(ranks, "channel", D2Q9, (12, 14), cut=cut)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_odd_numbers_of_steps(name: str) -> None:
    agree(4, name, D2Q9, (12, 14), cut=(2, 2), steps=(3, 2, 1), sums=True)


@pytest.mark.parametrize(
    ("name", "streaming", "cut"),
    [("channel", "in-place", (3, 1)), ("sponged", "push", (2, 2))]
    + [long(n, s, c) for n in CASES for s in AHEAD for c in CUTS],
)
def test_writes_to_other_ranks(name: str, streaming: str, cut: Any) -> None:
    """What is written to copies of other ranks' cells goes back to these, also after an odd number of steps."""
    agree(
        int(np.prod(cut)), name, D2Q9, (12, 14), cut=cut, steps=(3, 2, 1), streaming=streaming, sums=name == "outflow"
    )


@pytest.mark.long
@pytest.mark.parametrize("streaming", ["pull", *AHEAD])
@pytest.mark.parametrize("name", CASES)
def test_loops_one_by_one(name: str, streaming: str) -> None:
    """What is written in private among received layers is there still when the next loop runs."""
    agree(4, name, D2Q9, (12, 14), cut=(2, 2), steps=(5,), singly=True, sums=True, streaming=streaming)


@pytest.mark.parametrize(("ranks", "cut"), [long(2, (1, 2)), long(4, (2, 2)), long(3, (3, 1)), long(3, (1, 3))])
def test_outflow_and_edges(ranks: int, cut: Any) -> None:
    agree(ranks, "outflow", D2Q9, (12, 14), cut=cut, sums=True)


@pytest.mark.parametrize(("ranks", "cut"), [long(3, (3, 1)), long(2, (1, 2)), long(4, (2, 2)), long(4, (4, 1))])
def test_a_moving_body_across_a_periodic_side(ranks: int, cut: Any) -> None:
    agree(ranks, "bounced", D2Q9, (12, 14), cut=cut)


@pytest.mark.parametrize(
    ("name", "cut", "streaming"),
    [("outflow", (1, 3), "pull")]
    + [long(n, c, s) for n in CASES for c in ((1, 2), (2, 2), (3, 1), (1, 3)) for s in ("pull", *AHEAD)],
)
def test_rows_with_more_cells_beyond(name: str, cut: Any, streaming: str) -> None:
    """Long rows are a multiple of four: here 37 cells and three beyond the sides."""
    agree(int(np.prod(cut)), name, D2Q9, (9, 37), cut=cut, sums=True, streaming=streaming)


@pytest.mark.parametrize("streaming", ["pull", *(long(s) for s in ("push", "three-phase", "in-place"))])
def test_cells_beyond_change_nothing(streaming: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cell beyond the sides or three: the same to the last bit."""
    several = run(SelfComm(), "outflow", D2Q9, (9, 37), streaming=streaming)
    monkeypatch.setattr("fluxloom.lbm.cells.box._LONG", 1000)
    one = run(SelfComm(), "outflow", D2Q9, (9, 37), streaming=streaming)
    for name in ("velocity", "density"):
        np.testing.assert_array_equal(several[name], one[name])
    for name, force in one["forces"].items():
        np.testing.assert_array_equal(several["forces"][name], force)


@pytest.mark.parametrize(
    ("name", "lattice", "cut"),
    [long("channel", D3Q19, (1, 2, 2))]
    + [
        long(n, D3Q27, c)
        for n in ("channel", "outflow", "bounced")
        for c in ((2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 2), (3, 1, 2))
    ],
)
def test_three_dimensions(name: str, lattice: Lattice, cut: Any) -> None:
    agree(int(np.prod(cut)), name, lattice, (9, 9, 10), cut=cut, sums=name == "outflow")


@pytest.mark.long
@pytest.mark.parametrize("cut", [(2, 1, 1), (1, 2, 1), (1, 1, 3), (2, 2, 2), (4, 1, 2)])
@pytest.mark.parametrize("streaming", AHEAD)
@pytest.mark.parametrize("name", CASES)
def test_writes_to_other_ranks_in_space(name: str, streaming: str, cut: Any) -> None:
    agree(
        int(np.prod(cut)), name, D3Q19, (9, 9, 10), cut=cut, steps=(3, 1), streaming=streaming, sums=name == "outflow"
    )


@pytest.mark.long
@pytest.mark.parametrize("options", [
    {"layout": fl.AoS()}, {"layout": fl.Blocked(8), "dtype": "float32"}, {"streaming": "three-phase"},
    {"force": (1e-4, 2e-4)}, {"force": (1e-4, 2e-4), "field": True},
    *({"streaming": s, "force": (1e-4, 2e-4), "field": True, "layout": fl.AoS()} for s in AHEAD),
    *({"streaming": s, "layout": fl.Blocked(8), "dtype": "float32"} for s in AHEAD),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("name", CASES)
def test_forms(name: str, options: Values) -> None:
    agree(4, name, D2Q9, (12, 14), cut=(2, 2), sums=True, **options)


@pytest.mark.parametrize("streaming", ["pull", *AHEAD])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "device",
    [
        pytest.param("opencl", marks=[pytest.mark.opencl, pytest.mark.long]),
        pytest.param("cuda", marks=pytest.mark.cuda),
    ],
)
def test_work_items(device: str, name: str, streaming: str) -> None:
    """Ranks with a memory of their own: on one GPU, if there is but one."""
    agree(3, name, D2Q9, (12, 14), cut=(3, 1), steps=(4, 3), sums=True, device=device, streaming=streaming)


@pytest.mark.cuda
@pytest.mark.parametrize("streaming", ["pull", *AHEAD])
@pytest.mark.parametrize(("name", "cut"), [("channel", (2, 2, 1)), ("outflow", (1, 2, 2)), ("bounced", (4, 1, 1))])
def test_space_on_gpus(name: str, cut: Any, streaming: str) -> None:
    agree(4, name, D3Q19, (9, 9, 10), cut=cut, sums=True, device="cuda", dtype="float64", streaming=streaming)


@pytest.mark.parametrize("streaming", AHEAD)
@pytest.mark.parametrize(
    "device",
    [
        pytest.param("opencl", marks=[pytest.mark.opencl, pytest.mark.long]),
        pytest.param("cuda", marks=pytest.mark.cuda),
    ],
)
def test_interior_of_work_items(device: str, streaming: str) -> None:
    """Slabs so large that their interior runs while messages travel."""
    agree(2, "channel", D2Q9, (40, 44), cut=(2, 1), steps=(3, 2), sums=True, device=device, streaming=streaming)


def test_parts_that_are_too_thin() -> None:
    def ask(comm: Comm) -> None:
        with pytest.raises(SolverError, match=r"axis 1 .* is cut into 4 parts that are too thin"):
            run(comm, "channel", D2Q9, (12, 7), cut=(1, 4))
        with pytest.raises(SolverError, match="not below the speed of sound"):  # on one rank; all say so
            run(comm, "outflow", D2Q9, (12, 14), cut=(4, 1), boundaries={
                "xmin": Velocity(lambda at: np.where(at[:, :1] > 10, 5.0, 0.0) * np.ones(at.shape)),
                "xmax": Outflow(), "ymin": Wall(), "ymax": Wall()})  # fmt: skip

    run_threads(4, ask)


@fl.kernel
def shift(x: Read, y: Write):
    y[0] = 1.0 + x[0]


@fl.kernel
def gather(f: Read, g: Write):
    g[0] = f[0] + 10.0 * f[1]


@pytest.mark.parametrize("chained", [False, True])
def test_private_slots_are_not_received_anew(chained: bool) -> None:
    """Each rank writes the layer before its cells; loops that follow see that, the owner does not."""

    def rank(comm: Comm) -> None:
        ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        grid = ctx.grid((4 * comm.size,), "line", periodic=True)
        f = ctx.dat(grid, np.arange(4.0) + 100.0 * comm.rank, "f")
        g = ctx.dat(grid, np.zeros(4), "g")
        one = ctx.set(Part(0, 0, 1, 1, 1, np.array([comm.rank]), comm.size), "one")
        first = SlotMap(one, grid, [0], [0], "first", stored=True, private=True)
        last = SlotMap(one, grid, [4], [0], "last", stored=True)
        assert (first.away, first.stays, last.away, last.stays) == (True, True, False, True)
        loops = [
            Loop(shift, one, f[last], f[first]),
            Loop(gather, grid, f[ctx.stencil(grid, [[-1], [1]])], g),
        ]
        chain = Chain(loops)
        mine, beyond = np.arange(4.0) + 100.0 * comm.rank, 100.0 * ((comm.rank + 1) % comm.size)
        want = np.array([mine[3] + 1, *mine[:3]]) + 10.0 * np.array([*mine[1:], beyond])
        for _ in range(2):
            if chained:
                chain()
            else:
                for loop in loops:
                    loop()
            np.testing.assert_array_equal(g.read(), want)
            np.testing.assert_array_equal(f.read(), mine)
        held = f.data_ro
        if chained:
            chain()
            np.testing.assert_array_equal(g.read(), want)
        else:
            with pytest.raises(LoopError, match="shift: somebody holds an array over 'f'"):
                loops[0]()
        assert held[3] == mine[3]

    run_threads(3, rank)


@pytest.mark.mpi
@pytest.mark.parametrize("streaming", ["in-place", long("pull"), long("push")])
def test_processes(streaming: str) -> None:
    done = mpiexec(
        2,
        f"""
        from fluxloom.comm.base import SelfComm
        from fluxloom.lbm.lattices import D2Q9
        from tests.parallel.test_lattice_ranks import check, run

        given = {{"streaming": "{streaming}"}}
        one = run(SelfComm(), "outflow", D2Q9, (12, 14), **given)  # on each rank: one that waits would spin
        parts = comm.allgather(run(comm, "outflow", D2Q9, (12, 14), cut=(1, 2), **given))
        if comm.rank == 0:
            check(one, parts, True)
            print("equal")
        """,
    )
    assert done.stdout.count("equal") == 1
