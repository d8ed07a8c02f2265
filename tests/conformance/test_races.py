"""Increments through maps: every race strategy against the reference device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Loop

from .harness import DEVICES, LAYOUTS, agree, compare, context, everywhere, expected, native, schedules, together
from .kernels import counts, each_side, extremes, flux, flux_and_sums, flux_scalar, matrix_flux, one_side, uneven

EDGES, NODES = 5003, 2557


def table(edges: int = EDGES, nodes: int = NODES, seed: int = 0) -> np.ndarray:
    """A map with mostly local, some far and some equal legs, in which some nodes are never met."""
    rng = np.random.default_rng(seed)
    first = np.arange(edges) * (nodes - 1) // max(1, edges)
    second = np.minimum(first + rng.integers(0, 40, edges), nodes - 1)
    out = np.stack([first, second], axis=1)
    far = rng.random(edges) < 0.03
    out[far, 1] = rng.integers(0, nodes, int(far.sum()))
    out[rng.random(edges) < 0.02, 1] = out[rng.random(edges) < 0.02, 0].max(initial=0)
    return out


class Mesh:
    """Edges between nodes and values on both."""

    def __init__(self, ctx: fl.Context, layout: Any, dtype: str, edges: int = EDGES, nodes: int = NODES) -> None:
        self.ctx, self.layout, self.dtype = ctx, layout, dtype
        self.rng = np.random.default_rng(7)
        self.edges, self.nodes = ctx.set(edges, "edges"), ctx.set(nodes, "nodes")
        self.e2n = ctx.map(self.edges, self.nodes, table(edges, nodes), "e2n")
        self.w = self.dat(self.edges)

    def dat(self, over: fl.Set, *shape: int, dtype: str | None = None) -> fl.Dat:
        values = self.rng.random((over.size, *shape))
        return self.ctx.dat(over, values, dtype=dtype or self.dtype, layout=self.layout)


def edge_flux(ctx, schedule=None, layout=None, dtype="float64", components=4, edges=EDGES, nodes=NODES):
    mesh = Mesh(ctx, layout, dtype, edges, nodes)
    u, r = mesh.dat(mesh.nodes, components), mesh.dat(mesh.nodes, components)
    loop = Loop(flux, mesh.edges, mesh.w, u[mesh.e2n], r[mesh.e2n], n=components, schedule=schedule)
    return [loop], {"r": r}


def scalar_flux(ctx, schedule=None, layout=None, dtype="float64"):
    mesh = Mesh(ctx, layout, dtype)
    u, r = mesh.dat(mesh.nodes), mesh.dat(mesh.nodes)
    return [Loop(flux_scalar, mesh.edges, mesh.w, u[mesh.e2n], r[mesh.e2n], schedule=schedule)], {"r": r}


def uneven_flux(ctx, schedule=None, layout=None, dtype="float64"):
    mesh = Mesh(ctx, layout, dtype)
    u, r = mesh.dat(mesh.nodes, 3), mesh.dat(mesh.nodes, 3)
    return [Loop(uneven, mesh.edges, mesh.w, u[mesh.e2n], r[mesh.e2n], schedule=schedule)], {"r": r}


def matrices(ctx, schedule=None, layout=None, dtype="float64"):
    mesh = Mesh(ctx, layout, dtype)
    u, r = mesh.dat(mesh.nodes, 2, 3), mesh.dat(mesh.nodes, 2, 3)
    return [Loop(matrix_flux, mesh.edges, mesh.w, u[mesh.e2n], r[mesh.e2n], schedule=schedule)], {"r": r}


def leg(ctx, schedule=None, layout=None, dtype="float64", number=0):
    mesh = Mesh(ctx, layout, dtype)
    u, r = mesh.dat(mesh.nodes, 2), mesh.dat(mesh.nodes, 2)
    through = mesh.e2n[number]
    return [Loop(one_side, mesh.edges, mesh.w, u[through], r[through], schedule=schedule)], {"r": r}


def two_legs(ctx, schedule=None, layout=None, dtype="float64"):
    """One dat incremented through each leg by an argument of its own."""
    mesh = Mesh(ctx, layout, dtype)
    r = mesh.dat(mesh.nodes, 2)
    return [Loop(each_side, mesh.edges, mesh.w, r[mesh.e2n[1]], r[mesh.e2n[0]], schedule=schedule)], {"r": r}


def two_maps(ctx, schedule=None, layout=None, dtype="float64", same_set=True):
    mesh = Mesh(ctx, layout, dtype)
    over = mesh.nodes if same_set else ctx.set(NODES // 2, "other")
    other = ctx.map(mesh.edges, over, table(EDGES, over.size, 5)[:, :1], "e2o")
    r, s = mesh.dat(mesh.nodes, 2), mesh.dat(over, 2)
    return [Loop(each_side, mesh.edges, mesh.w, r[mesh.e2n[0]], s[other[0]], schedule=schedule)], {"r": r, "s": s}


def extreme(ctx, schedule=None, layout=None, dtype="float64"):
    mesh = Mesh(ctx, layout, dtype)
    u, low, high = (mesh.dat(mesh.nodes, 2) for _ in range(3))
    loop = Loop(extremes, mesh.edges, mesh.w, u[mesh.e2n], low[mesh.e2n], high[mesh.e2n], schedule=schedule)
    return [loop], {"low": low, "high": high}


def integers(ctx, schedule=None, layout=None, dtype="int64"):
    mesh = Mesh(ctx, layout, "float32")
    values = np.random.default_rng(3).integers(0, 9, EDGES)
    c = ctx.dat(mesh.edges, values, dtype=dtype, layout=layout)
    r, low, high = (
        ctx.dat(mesh.nodes, np.random.default_rng(k).integers(1, 9, NODES), dtype=dtype, layout=layout)
        for k in range(3)
    )
    loop = Loop(counts, mesh.edges, c, r[mesh.e2n], low[mesh.e2n], high[mesh.e2n], schedule=schedule)
    return [loop], {"r": r, "low": low, "high": high}


def flux_with_sums(ctx, schedule=None, layout=None, dtype="float64"):
    mesh = Mesh(ctx, layout, dtype)
    u, r = mesh.dat(mesh.nodes, 2), mesh.dat(mesh.nodes, 2)
    total, low, high = ctx.scalar([0.5, 1.0]), ctx.scalar(3.0), ctx.scalar(-3.0)
    n = ctx.scalar(7, dtype="int64")
    loop = Loop(
        flux_and_sums, mesh.edges, mesh.w, u[mesh.e2n], r[mesh.e2n], total, low, high, n, schedule=schedule
    )  # fmt: skip
    return [loop], {"r": r, "total": total, "low": low, "high": high, "n": n}


def check(
    case, device: str, lanes: int, dtype: str, without=(), *, threads: int = 2, layout: str = "aos", **options
) -> None:
    """Run a case under every strategy but some, and compare each."""
    if dtype == "float16" and device != "cpu":
        without = (*without, "atomic")  # not there: it would round after every addition
    wanted = schedules(device, lanes=lanes, without=without)
    found = together(case, wanted, device, threads=threads, layout=LAYOUTS[layout], dtype=dtype, **options)
    assert set(found) == set(wanted)
    want = expected(case, dtype=dtype, **options)
    for name, got in found.items():
        compare(got, want, dtype if dtype.startswith("f") else "float64", f"{case.__name__} {name}")


@pytest.mark.parametrize(
    ("device", "lanes", "dtype"),
    everywhere(
        [
            (1, "float64"), (4, "float64"), (8, "float64"), (16, "float64"), (16, "float32"), (8, "float16"),
            (1, "float32"), (4, "float32"), (8, "float32"), (1, "float16"), (4, "float16"), (16, "float16"),
        ],
        [(0, "float64"), (0, "float32"), (0, "float16")],
        keep=5,
        keep_items=1,
    ),
)  # fmt: skip
def test_edge_flux(device: str, lanes: int, dtype: str) -> None:
    check(edge_flux, device, lanes, dtype)


@pytest.mark.parametrize("layout", ["soa", "blocked"])
@pytest.mark.parametrize(
    ("device", "lanes", "dtype"),
    everywhere(
        [(4, "float64"), (8, "float32"), (1, "float64"), (16, "float16"), (8, "float64")],
        [(0, "float64"), (0, "float32"), (0, "float16")],
        keep=2,
        keep_items=1,
    ),
)
def test_edge_flux_in_other_layouts(device: str, layout: str, lanes: int, dtype: str) -> None:
    check(edge_flux, device, lanes, dtype, layout=layout)


@pytest.mark.parametrize("threads", [1, 3])
def test_edge_flux_on_threads(threads: int) -> None:
    check(edge_flux, "cpu", 8, "float64", threads=threads)


@pytest.mark.parametrize(
    ("device", "components", "lanes", "dtype"),
    everywhere(
        [(n, *rest) for rest in [(8, "float64"), (4, "float32")] for n in (1, 2, 3, 5, 7)],
        [(3, 0, "float64"), (7, 0, "float32"), (5, 0, "float64"), (1, 0, "float32"), (2, 0, "float32")],
        keep=5,
        keep_items=1,
    ),
)
def test_components(device: str, components: int, lanes: int, dtype: str) -> None:
    check(edge_flux, device, lanes, dtype, components=components)


KERNELS = (
    (scalar_flux, (), ()),
    (uneven_flux, (), ()),
    (matrices, (), ()),
    (two_maps, ("gather1",), ("gather",)),
    (two_legs, ("gather1",), ("gather",)),
    (extreme, ("atomic",), ("atomic",)),
    (flux_with_sums, ("gather",), ("gather",)),
)
FORMS = everywhere(
    [(8, "aos", "float64"), (4, "soa", "float32"), (1, "aos", "float64")],
    [(0, "aos", "float64"), (0, "soa", "float32"), (0, "blocked", "float64")],
    keep=2,
    keep_items=1,
)


def kernel_forms() -> list[Any]:
    """Each kernel with each form; on the CPU the first two forms take turns unless long tests are asked for."""
    out = []
    for k, (case, *without) in enumerate(KERNELS):
        for n, form in enumerate(FORMS):
            turn = form.values[0] != "cpu" or n > 1 or n == k % 2
            marks = [*form.marks, *([] if turn else [pytest.mark.long])]
            name = "-".join(map(str, (case.__name__, *form.values)))
            out.append(pytest.param(case, *without, *form.values, marks=marks, id=name))
    return out


@pytest.mark.parametrize(
    ("case", "without", "items_without", "device", "lanes", "layout", "dtype"), kernel_forms()
)  # fmt: skip
def test_kernels(case, without, items_without, device: str, lanes: int, layout: str, dtype: str) -> None:
    check(case, device, lanes, dtype, without if device == "cpu" else items_without, layout=layout)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(("device", "lanes"), everywhere([1, 8], [0]))
def test_one_leg(device: str, number: int, lanes: int) -> None:
    check(leg, device, lanes, "float64", number=number)


@pytest.mark.parametrize(
    ("device", "layout", "dtype"),
    everywhere(
        [(layout, dtype) for layout in ("aos", "blocked") for dtype in ("int64", "int32")],
        [("aos", "int64"), ("soa", "int32")],
        keep_items=1,
    ),
)
def test_integer_increments(device: str, dtype: str, layout: str) -> None:
    check(integers, device, 8, dtype, ("atomic",), layout=layout)


@pytest.mark.parametrize("device", DEVICES)
def test_two_maps_to_different_sets(device: str) -> None:
    found = together(two_maps, schedules(device, lanes=8), device, same_set=False)
    assert set(found) == set(schedules(device, without=("gather",)))
    for name, got in found.items():
        compare(got, expected(two_maps, same_set=False), what=name)


SMALL = [(0, 1), (0, 0), (1, 1), (1, 2), (7, 3), (7, 9), (17, 5000), (299, 7)]


@pytest.mark.parametrize(("device", "edges", "nodes"), everywhere(SMALL, SMALL))
def test_small_sets(device: str, edges: int, nodes: int) -> None:
    """Empty and tiny sets, fewer elements than lanes or items, more targets than elements and the reverse."""
    check(edge_flux, device, 8, "float64", edges=edges, nodes=nodes, components=3)


@pytest.mark.parametrize("case", [edge_flux, flux_with_sums, extreme], ids=lambda c: c.__name__)
@pytest.mark.parametrize(("device", "threads"), everywhere([1, 2, 3], [0]))
def test_automatic_schedule(case, device: str, threads: int) -> None:
    agree(case, device, threads=threads)


@pytest.mark.parametrize("device", DEVICES)
def test_each_loop_by_itself(device: str) -> None:
    """The same through single loops instead of a chain, called twice."""
    for name, schedule in schedules(device).items():
        compare(native(edge_flux, device, schedule=schedule, times=2), expected(edge_flux, 2), what=name)


@pytest.mark.parametrize(
    ("device", "block"), everywhere([16, 100, 1000, 4096, 20000], [32, 100, 384, 1024], keep_items=1)
)
def test_blocks(device: str, block: int) -> None:
    """Block sizes that do and do not divide the set or the lanes, with sums in the same loop."""
    names = ("block_colour", "block_permute") if device == "cpu" else ("block_colour", "two_pass", "element_colour")
    wanted = {name: fl.Schedule(strategy=name, block=block, lanes=8) for name in names}
    found = together(flux_with_sums, wanted, device)
    assert set(found) == set(wanted)
    for name, got in found.items():
        compare(got, expected(flux_with_sums), "float64", name)


@pytest.mark.parametrize(("device", "layout"), everywhere([], LAYOUTS, keep_items=1))
def test_component_by_component(device: str, layout: str) -> None:
    names = ("gather", "atomic", "element_colour", "block_colour")
    wanted = {name: fl.Schedule(strategy=name, split=True) for name in names}
    for case in (edge_flux, uneven_flux):
        found = together(case, wanted, device, layout=LAYOUTS[layout])
        assert set(found) == set(names)
        for name, got in found.items():
            compare(got, expected(case), what=f"{case.__name__} {name}")


@pytest.mark.parametrize("device", everywhere([]))
def test_limits_of_registers(device: str) -> None:
    wanted = {n: fl.Schedule(strategy="gather", registers=n, block=256) for n in (24, 64, 255)}
    for got in together(edge_flux, wanted, device).values():
        compare(got, expected(edge_flux))


@pytest.mark.parametrize("device", DEVICES)
def test_loops_that_share_a_map_keep_their_own_plans(device: str) -> None:
    """Plans are shared by loops that increment through the same legs, and only by those."""
    without = () if device == "cpu" else ("atomic", "element", "block_colour_staged")
    for name, schedule in schedules(device, without=without).items():
        for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
            ctx = context(device, threads=2, schedule=schedule)
            mesh = Mesh(ctx, None, "float64")
            r = [mesh.dat(mesh.nodes, 2) for _ in range(3)]
            w, e2n = mesh.w, mesh.e2n
            u = mesh.dat(mesh.nodes, 2)
            start = [d.read() for d in r]
            runs = [
                Loop(one_side, mesh.edges, w, u[e2n[0]], r[0][e2n[0]]),
                Loop(one_side, mesh.edges, w, u[e2n[1]], r[1][e2n[1]]),
                Loop(flux, mesh.edges, w, u[e2n], r[2][e2n], n=2),
            ]
            for k in order:
                runs[k]()
            t, x, v = e2n.table, w.read(), u.read()
            want = [s.copy() for s in start]
            for k in (0, 1):
                np.add.at(want[k], t[:, k], x[:, None] * v[t[:, k]] * [1.0, -1.0])
            f = x[:, None] * (v[t[:, 0]] - v[t[:, 1]])
            np.add.at(want[2], t[:, 0], f)
            np.add.at(want[2], t[:, 1], -f)
            for k in range(3):
                np.testing.assert_allclose(r[k].read(), want[k], rtol=1e-12, atol=1e-12, err_msg=f"{name} {order} {k}")
