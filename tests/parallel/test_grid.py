"""Lattices on several ranks: every cut gives what one rank gives, to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Chain, Const, Context, Inc, Loop, Max, Read, Write
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import DatError, DeviceUnavailable, PlanError
from fluxloom.dsl.ranks.halo_loops import DistributedSequence, OneTask
from fluxloom.lbm.lattices import D2Q9, D3Q19, Lattice
from tests.lattice_names import lattice_flow
from tests.parallel.launch import mpiexec

FIVE = [(0, 0), (0, -1), (0, 1), (-1, 0), (1, 0)]
NINE = list(product((-1, 0, 1), repeat=2))
ALL_27 = list(product((-1, 0, 1), repeat=3))
FAR = [(0, 0), (2, 1), (-2, 2), (1, -2), (-2, -2), (0, 2)]

Values = dict[str, Any]
Case = Callable[..., Values]


@fl.kernel
def weigh(u: Read, v: Write, *, legs: Const[int]):
    total = 0.0
    for k in range(legs):
        total += (k + 1) * u[k]
    v[0] = total / (legs * (legs + 1) // 2)


@fl.kernel
def weigh_two(u: Read, v: RW, *, legs: Const[int]):
    for c in range(2):
        total = 0.0
        for k in range(legs):
            total += (k + 1) * u[k][c]
        v[c] = 0.25 * v[c] + total / (2 * legs * legs)


@fl.kernel
def sums(u: Read, total: Inc, most: Max, n: Inc):
    total[0] += u[0]
    most[0] = max(most[0], u[0])
    if u[0] > 0.5:
        n[0] += 1


@fl.kernel
def weigh_and_sum(u: Read, v: Write, total: Inc):
    v[0] = 0.25 * (u[1] + u[2] + u[3] + u[4]) - u[0]
    total[0] += u[0] + u[1] * u[2]


@fl.kernel
def add(u: RW, *, value: float):
    u[0] += value


@fl.kernel
def put(f: Read, out: Inc):
    out[0] += f[0]


def context(comm: Comm, device: str = "cpu") -> Context:
    return Context(device, threads=1, comm=comm, tuning=False, schedule=fl.Schedule(deterministic="global"))


def everywhere(function: Case, ranks: int, *arguments: Any, **options: Any) -> tuple[list[Values], Values]:
    """Run on some ranks; return what each found, and the fields of the whole lattice."""
    found = run_threads(ranks, lambda comm: function(comm, *arguments, **options))
    whole: Values = {}
    for name, value in found[0].items():
        if isinstance(value, np.ndarray) and value.ndim:
            lead = found[0]["shape"]
            whole[name] = np.full((*lead, *value.shape[len(lead) :]), np.nan, dtype=value.dtype)
            for each in found:
                whole[name][each["window"]] = each[name]
    return found, whole


def agree(function: Case, ranks: int, *arguments: Any, **options: Any) -> list[Values]:
    """Check that some ranks find what one finds: fields and counts to the last bit, sums nearly."""
    one = function(SelfComm(), *arguments, **{k: v for k, v in options.items() if k != "cut"})
    found, whole = everywhere(function, ranks, *arguments, **options)
    assert whole
    for name, field in whole.items():
        np.testing.assert_array_equal(field, one[name], err_msg=name)
    for each in found:
        for name, value in each.get("sums", {}).items():
            np.testing.assert_allclose(value, one["sums"][name], rtol=1e-13, err_msg=name)
    return found


def set_ghosts(dat: fl.Dat, grid: Any, whole: Sequence[int], periodic: Sequence[bool]) -> None:
    """Give each place beyond an end of the lattice a value of its own, and what is exchanged no number at all.

    A rank sets what lies beyond the ends beside its own elements only: where that is a corner of another rank's
    box, it has to travel.
    """
    full = dat.storage()
    at = np.ogrid[tuple(slice(o - g, o + n + g) for o, n, g in zip(grid.offset, grid.shape, grid.ghost, strict=True))]
    value, beyond, other = np.zeros(()), np.zeros((), dtype=bool), np.zeros((), dtype=bool)
    for axis, places in enumerate(at):
        out = (places < 0) | (places >= whole[axis])
        mine = (places >= grid.offset[axis]) & (places < grid.offset[axis] + grid.shape[axis])
        value = value + np.sin(places * (axis + 1.7))
        beyond = beyond | (out & (not periodic[axis]))
        other = other | ~(mine | (out & (not periodic[axis])))
    fill = np.broadcast_to(np.where(other, np.nan, value), full.shape[: len(whole)])
    mask = np.broadcast_to(beyond | other, fill.shape)
    full[mask] = fill[mask] if full.ndim == len(whole) else fill[mask][:, None]


def smooth(
    comm: Comm, shape: tuple[int, ...], offsets: list[tuple[int, ...]], periodic: Sequence[bool], *,
    device: str = "cpu", ghost: int = 0, reach: int = 1, dtype: str = "float64", layout: Any = None, cut: Any = None,
    alone: bool = False,
) -> Values:  # fmt: skip
    """Return what a chain leaves that is called several times, with changes by the host in between.

    ``alone``: its loops run by themselves too.
    """
    ctx = context(comm, device)
    grid = ctx.grid(shape, periodic=tuple(periodic), ghost=ghost, reach=reach, cut=cut)
    stencil = ctx.stencil(grid, offsets)
    start = np.random.default_rng(0).random(shape)
    u = ctx.dat(grid, grid.local(start), "u", dtype=dtype, layout=layout)
    v = ctx.dat(grid, np.zeros(grid.shape), "v", dtype=dtype, layout=layout)
    if not isinstance(layout, fl.Blocked):
        set_ghosts(u, grid, shape, periodic)
        set_ghosts(v, grid, shape, periodic)
    real = "float64" if dtype == "float64" else "float32"
    total, most, n = ctx.scalar(0.0, dtype=real), ctx.scalar(-1.0, dtype=real), ctx.scalar(0)
    forth = Loop(weigh, grid, u[stencil], v, legs=len(offsets))
    back = Loop(weigh, grid, v[stencil], u, legs=len(offsets))
    chain = Chain([forth, back, Loop(sums, grid, u, total, most, n)])
    chain()
    u.write(u.read() + np.asarray(0.25, dtype=u.scalar.numpy))
    chain()
    chain()
    if alone:
        forth()
        v.data[...] *= 2
        back()
    results = {"most": most.value, "n": n.value} | ({"total": total.value} if real == "float64" else {})
    return {"u": u.read(), "v": v.read(), "sums": results, "window": grid.window, "shape": shape, "cut": grid.factors}


def long(*values: Any) -> Any:
    """Return parameters of a test that runs when long tests are asked for."""
    return pytest.param(*values, marks=pytest.mark.long)


@pytest.mark.parametrize("ranks", [2, long(3), 4, long(7)])
@pytest.mark.parametrize("periodic", [(True, True), long((False, False)), long((True, False)), long((False, True))])
def test_five_points(periodic: tuple[bool, bool], ranks: int) -> None:
    found = agree(smooth, ranks, (23, 10), FIVE, periodic, ghost=0 if all(periodic) else 1, alone=True)
    assert found[0]["cut"] == (ranks, 1)


@pytest.mark.parametrize("cut", [(2, 2), (2, 3), long((1, 3))])
@pytest.mark.parametrize("periodic", [(True, False), long((True, True)), long((False, False)), long((False, True))])
def test_nine_points_with_corners(periodic: tuple[bool, bool], cut: tuple[int, int]) -> None:
    agree(smooth, cut[0] * cut[1], (8, 9), NINE, periodic, ghost=0 if all(periodic) else 1, cut=cut)


@pytest.mark.parametrize(
    ("periodic", "cut"), [((True, True, True), (3, 1, 1)), ((False, True, False), (2, 2, 2))]
)
def test_27_points(periodic: tuple[bool, ...], cut: tuple[int, ...]) -> None:
    agree(smooth, int(np.prod(cut)), (7, 6, 5), ALL_27, periodic, ghost=0 if all(periodic) else 1, cut=cut)


@pytest.mark.long
@pytest.mark.parametrize("cut", [(7, 1, 1), (1, 4, 1), (1, 1, 3), (1, 2, 2), (2, 1, 2), (3, 3, 3)])
@pytest.mark.parametrize("periodic", list(product((False, True), repeat=3)))
def test_27_points_every_cut(periodic: tuple[bool, ...], cut: tuple[int, ...]) -> None:
    agree(smooth, int(np.prod(cut)), (7, 6, 5), ALL_27, periodic, ghost=0 if all(periodic) else 1, cut=cut)


@pytest.mark.parametrize(
    ("periodic", "cut"),
    [((True, True), (4, 1)), ((False, True), (2, 2)), long((True, True), (2, 2)), long((False, True), (4, 1))],
)
def test_reach_of_two(periodic: tuple[bool, bool], cut: tuple[int, int]) -> None:
    agree(smooth, 4, (9, 8), FAR, periodic, ghost=0 if all(periodic) else 2, reach=2, cut=cut)


@pytest.mark.parametrize(("ranks", "periodic"), [(2, True), (7, True), long(3, False)])
def test_one_dimension(ranks: int, periodic: bool) -> None:
    agree(smooth, ranks, (29,), [(0,), (-1,), (1,)], (periodic,), ghost=0 if periodic else 1)


@pytest.mark.parametrize(
    ("dtype", "layout", "cut"),
    [
        ("float32", fl.SoA(), (3, 1)), ("float16", fl.AoS(), (1, 3)), ("float64", fl.Blocked(4), (3, 1)),
        long("float32", fl.SoA(), (1, 3)), long("float16", fl.AoS(), (3, 1)), long("float64", fl.Blocked(4), (1, 3)),
        long("float32", fl.Blocked(8), (3, 1)), long("float16", fl.SoA(), (3, 1)),
    ],
    ids=str,
)  # fmt: skip
def test_types_and_layouts(dtype: str, layout: Any, cut: tuple[int, int]) -> None:
    agree(smooth, 3, (8, 9), FIVE, (True, True), dtype=dtype, layout=layout, cut=cut)


@pytest.mark.parametrize(("ranks", "cut"), [(3, None), long(2, None), (4, (2, 2))])
def test_opencl(opencl: str, ranks: int, cut: Any) -> None:
    agree(smooth, ranks, (10, 9), FIVE, (True, True), device=opencl, cut=cut)


def summed(comm: Comm, device: str) -> Values:
    """Return what a loop leaves that reads neighbours and sums: parts of the sum belong to spans."""
    ctx = context(comm, device)
    shape = (48, 30)
    grid = ctx.grid(shape, periodic=True)
    u = ctx.dat(grid, grid.local(np.random.default_rng(2).random(shape)), "u")
    v, total = ctx.dat(grid, name="v"), ctx.scalar(1.0)
    loop = Loop(weigh_and_sum, grid, u[ctx.stencil(grid, FIVE)], v, total)
    loop()
    first = total.value
    loop()
    sums = {"first": first, "both": total.value}
    return {"v": v.read(), "sums": sums, "window": grid.window, "shape": shape}


@pytest.mark.parametrize("ranks", [2, 3])
def test_sums_of_neighbours(ranks: int) -> None:
    agree(summed, ranks, "cpu")


def test_sums_of_neighbours_opencl(opencl: str) -> None:
    agree(summed, 3, opencl)


@pytest.fixture(scope="module")
def opencl() -> str:
    """Return the name of the OpenCL device; skip without it."""
    try:
        Context("opencl")
    except DeviceUnavailable as error:
        pytest.skip(str(error))
    return "opencl"


def mixed(comm: Comm, layouts: Sequence[Any], *, fuse: bool, cut: Any = None) -> Values:
    """Return what a chain leaves that reads two dats of unlike types, changes one in place, and sums."""
    ctx = context(comm)
    shape = (10, 9)
    grid = ctx.grid(shape, periodic=True, cut=cut)
    stencil, right = ctx.stencil(grid, NINE), ctx.stencil(grid, FIVE)
    rng = np.random.default_rng(1)
    u = ctx.dat(grid, grid.local(rng.random((*shape, 2)), (2,)), "u", layout=layouts[0])
    v = ctx.dat(grid, grid.local(rng.random((*shape, 2)), (2,)), "v", dtype="float32", layout=layouts[1])
    w, x = ctx.dat(grid, name="w"), ctx.dat(grid, grid.local(rng.random(shape)), name="x")
    total, most, n = ctx.scalar(0.0), ctx.scalar(-1.0), ctx.scalar(0)
    chain = Chain(
        [
            fl.Reset(total, 0.0),
            Loop(weigh_two, grid, u[stencil], v, legs=9),
            Loop(weigh, grid, x[right], w, legs=5),
            Loop(add, grid, x, value=0.125),
            Loop(weigh_two, grid, v[stencil], u, legs=9),
            Loop(sums, grid, w, total, most, n),
        ],
        fuse=fuse,
    )
    for k in range(4):
        chain()
        if k == 1:
            x.data[...] *= 0.5
    return {
        "u": u.read(), "v": v.read(), "w": w.read(), "x": x.read(), "window": grid.window, "shape": shape,
        "sums": {"total": total.value, "most": most.value, "n": n.value},
    }  # fmt: skip


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize(("ranks", "cut"), [(2, None), long(4, (2, 2)), long(7, None)])
def test_chain_of_unlike_dats(fuse: bool, ranks: int, cut: Any) -> None:
    agree(mixed, ranks, (fl.AoS(), fl.SoA()), fuse=fuse, cut=cut)


@pytest.mark.long
@pytest.mark.parametrize("layouts", [(fl.SoA(), fl.AoS()), (fl.Blocked(4), fl.SoA())], ids=str)
def test_chain_of_other_layouts(layouts: Any) -> None:
    agree(mixed, 3, layouts, fuse=True)
    agree(mixed, 6, layouts, fuse=True, cut=(2, 3))


# --------------------------------------------------------------------------------- messages and spans


def form_of(loop: Loop) -> DistributedSequence:
    """Return the one sequence that a loop by itself has run."""
    assert loop._native is not None
    task = loop._native.sequencer
    assert isinstance(task, OneTask)
    (form,) = task._forms.values()
    return form


def items_of(comm: Comm, shape: tuple[int, ...], cut: tuple[int, ...]) -> tuple[str, int, tuple[int, ...]]:
    """Return what a loop is made of ("x": exchange, "c": computing), the bytes it sends, and the neighbours."""
    ctx = context(comm)
    grid = ctx.grid(shape, periodic=True, cut=cut)
    u, v = ctx.dat(grid, name="u"), ctx.dat(grid, name="v")
    loop = Loop(weigh, grid, u[ctx.stencil(grid, FIVE)], v, legs=5)
    loop()
    form = form_of(loop)
    (exchange,) = form.exchanges
    items = "".join("xc"[owner == 0] for owner in form._owners)
    while "xx" in items:
        items = items.replace("xx", "x")
    return items, exchange.bytes_sent, tuple(exchange.neighbours)


def test_slabs_compute_while_messages_travel() -> None:
    for items, sent, _ in run_threads(3, items_of, (12, 10), (3, 1)):
        assert items == "xcxcc"  # the interior, then both ends
        assert sent == 2 * 10 * 8
    for items, sent, neighbours in run_threads(4, items_of, (6, 10), (2, 2)):
        assert items == "xc"
        assert sent == (2 * 5 + 2 * 3 + 4) * 8
        assert len(neighbours) == 3


def test_exchange_only_when_something_changed() -> None:
    def work(comm: Comm) -> tuple[bool, ...]:
        ctx = context(comm)
        grid = ctx.grid((8, 5), periodic=True)
        u, v = ctx.dat(grid, np.ones(grid.shape), "u"), ctx.dat(grid, name="v")
        loop = Loop(weigh, grid, u[ctx.stencil(grid, FIVE)], v, legs=5)
        current = []
        for change in (None, None, u.storage, None, lambda: u.write(2.0)):
            if change is not None:
                change()
            current.append(u.current)
            loop()
            assert u.current
            assert not v.current
        assert (v.read() == 2.0).all()
        return tuple(current)

    assert run_threads(2, work) == [(False, True, False, True, False)] * 2


# ---------------------------------------------------------------------------------------------- errors


def test_too_thin_for_so_many_ranks() -> None:
    with pytest.raises(DatError, match=r"grid 'grid': a lattice of shape \(5, 4\) cannot be cut into 7 boxes"):
        run_threads(7, lambda comm: context(comm).grid((5, 4)))


def test_stencil_that_leads_past_the_layers() -> None:
    def work(comm: Comm) -> None:
        ctx = context(comm)
        ctx.stencil(ctx.grid((8, 8), periodic=True), [(2, 0)])

    with pytest.raises(DatError, match="axis 0"):
        run_threads(2, work)


def test_writes_through_a_map_of_a_lattice() -> None:
    def work(comm: Comm) -> None:
        ctx = Context("cpu", threads=1, comm=comm)
        grid, other = ctx.grid((4, 4)), ctx.grid((4, 4))
        there = ctx.map(grid, other, np.zeros((grid.size, 1), dtype=int))
        Loop(put, grid, ctx.dat(grid), ctx.dat(other)[there[0]])()

    with pytest.raises(PlanError, match="put: on several ranks a loop over a lattice cannot add to or write"):
        run_threads(2, work)


# ------------------------------------------------------------------------------------ lattice Boltzmann


def boltzmann(
    comm: Comm, lattice: Lattice, shape: tuple[int, ...], *, device: str = "cpu", dtype: str = "float32",
    layout: Any = None, cut: Any = None, steps: Sequence[int] = (4,),
) -> Values:  # fmt: skip
    """Return what some steps from a random start leave."""
    rng = np.random.default_rng(0)
    flow = lattice_flow(
        context(comm, device), shape, viscosity=0.03, lattice=lattice, dtype=dtype, layout=layout, cut=cut
    )
    flow.initialise(1 + 0.02 * rng.random(shape), 0.05 * rng.standard_normal((*shape, lattice.dimensions)))
    for count in steps:
        flow.step(count)
    assert flow.cells == np.prod(shape)
    found: Values = {"populations": flow.populations.read(), "window": flow.grid.window, "shape": shape}
    if len(steps) > 1:
        flow.check_finite()
        found |= {"density": flow.density(), "velocity": flow.velocity(), "sums": {"energy": flow.kinetic_energy()}}
    return found


@pytest.mark.parametrize(("ranks", "cut"), [long(2, None), (4, (2, 2)), long(7, None), long(3, None)])
@pytest.mark.long
def test_d2q9(ranks: int, cut: Any) -> None:
    agree(boltzmann, ranks, D2Q9, (14, 21), cut=cut, steps=(3, 2) if ranks == 2 else (4,))


@pytest.mark.parametrize(("ranks", "cut"), [(4, (1, 2, 2)), long(7, None), long(2, None)])
def test_d3q19(ranks: int, cut: Any) -> None:
    agree(boltzmann, ranks, D3Q19, (14, 6, 7), dtype="float64", cut=cut)


@pytest.mark.long
@pytest.mark.parametrize("layout", [fl.AoS(), fl.SoA(), fl.Blocked(8)], ids=str)
@pytest.mark.parametrize("cut", [(3, 1, 1), (1, 2, 1), (1, 1, 3), (2, 2, 2), (3, 2, 1)])
def test_d3q19_layouts(layout: Any, cut: tuple[int, int, int]) -> None:
    agree(boltzmann, int(np.prod(cut)), D3Q19, (6, 5, 9), layout=layout, cut=cut)


@pytest.mark.parametrize(("lattice", "shape", "cut"), [(D2Q9, (9, 21), (3, 1)), long(D3Q19, (6, 4, 5), (3, 1, 1))])
def test_lattices_opencl(opencl: str, lattice: Lattice, shape: tuple[int, ...], cut: Any) -> None:
    agree(boltzmann, 3, lattice, shape, device=opencl, cut=cut, steps=(3,))


def test_processes() -> None:
    done = mpiexec(
        3,
        """
        import numpy as np
        from fluxloom.comm.base import SelfComm
        from fluxloom.lbm.lattices import D2Q9
        from tests.parallel.test_grid import FIVE, boltzmann, smooth

        for case, arguments in ((boltzmann, (D2Q9, (16, 21))), (smooth, ((23, 10), FIVE, (True, True)))):
            mine, one = case(comm, *arguments), case(SelfComm(), *arguments)
            for name, value in mine.items():
                if isinstance(value, np.ndarray) and value.ndim:
                    assert np.array_equal(value, one[name][mine["window"]]), name
            for name, value in mine.get("sums", {}).items():
                assert np.isclose(value, one["sums"][name], rtol=1e-6), name
            print("equal")
        """,
    )
    assert done.stdout.count("equal") == 6
