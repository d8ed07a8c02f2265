"""The checking mode: indices, and every kind of loop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Const, Inc, Loop, Max, Read, Write
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import LoopCheckError
from tests.conformance.checking import BAD, DEVICES, N, found, planted
from tests.conformance.harness import context

# ------------------------------------------------------------------------------------------ indices


@fl.kernel
def of_component(u: Read, i: Read, r: Write):
    k = i[0]
    r[0] = u[k]  # fault


@fl.kernel
def of_local(u: Read, i: Read, r: Write):
    t = fl.zeros(3)
    for j in range(3):
        t[j] = u[j]
    r[0] = t[i[0]]  # fault


@fl.kernel
def to_local(u: Read, i: Read, r: Write):
    t = fl.zeros(3)
    for j in range(3):
        t[j] = u[j]
    t[i[0]] = 5.0  # fault
    r[0] = t[0] + t[1] + t[2]


@fl.kernel
def of_table(u: Read, i: Read, r: Write, *, weight: Const[list[float]] = (1.0, 2.0, 3.0)):  # type: ignore[assignment]
    r[0] = u[0] * weight[i[0]]  # fault


@fl.kernel
def in_the_second(u: Read, i: Read, r: Write):
    r[0] = u[0] if i[0] == 1 else u[i[0]]  # fault


@fl.func
def chosen(values, k):
    value = values[k]
    return 2.0 * value


@fl.kernel
def in_a_helper(u: Read, i: Read, r: Write):
    r[0] = chosen(u, i[0] + 0)  # fault


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("index", [-1, 3])
@pytest.mark.parametrize("kernel", [of_component, of_local, to_local, of_table, in_the_second, in_a_helper],
                         ids=lambda k: k.name)  # fmt: skip
def test_indices(device: str, kernel: fl.Kernel, index: int) -> None:
    """An index outside 0 ... n - 1 is an error, a negative one too: on the reference device always."""
    ctx = context(device, check=device != "reference")
    s = ctx.set(N, "items")
    u, i = ctx.dat(s, np.arange(3.0 * N).reshape(N, 3), "u"), ctx.dat(s, np.ones(N, "int64"), "i")
    loop = Loop(kernel, s, u, i, ctx.dat(s, np.zeros(N), "r"))
    loop()
    planted(i, index)
    error = found(loop, f"index {index} of" if device != "reference" or index < 0 else "", BAD)
    if kernel is in_a_helper:
        assert "value = values[k], called at" in str(error)


@fl.kernel
def put(i: Read, r: RW):
    k = i[0]
    r[k] = 1.0  # fault


@fl.kernel
def add(i: Read, r: Inc):
    r[i[0]] += 1.0  # fault


@fl.kernel
def add_to_one(i: Read, r: Inc):
    r[0][i[0]] += 1.0  # fault


@fl.kernel
def hashed(i: Read, r: RW):
    k = (i[0] * 6364136223846793005 + 1442695040888963407) % 3
    r[k] = 1.0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("index", [-1, 3])
@pytest.mark.parametrize("kernel", [put, add, add_to_one], ids=lambda k: k.name)
def test_indices_written(device: str, kernel: fl.Kernel, index: int) -> None:
    """A component that is changed is known at run time only."""
    ctx = context(device, check=device != "reference")
    _, edges, e2n = ring(ctx)
    i = ctx.dat(edges, np.ones(N, "int64"), "i")
    r = ctx.dat(e2n.target if kernel is add_to_one else edges, np.zeros((N, 3)), "r")
    loop = Loop(kernel, edges, i, r[e2n] if kernel is add_to_one else r)
    loop()
    assert r.read().sum() == N
    planted(i, index)
    found(loop, f"index {index} of 'r'" if device != "reference" or index < 0 else "", BAD)


@pytest.mark.parametrize("device", DEVICES)
def test_indices_of_sums_that_wrap_round(device: str) -> None:
    """What an index is made of may need more than 64 bits: no fault outside the checking mode."""
    ctx = context(device)
    s = ctx.set(N, "items")
    i, r = ctx.dat(s, np.arange(N) - 2**62, "i"), ctx.dat(s, np.zeros((N, 3)), "r")
    Loop(hashed, s, i, r)()
    with np.errstate(over="ignore"):
        chosen = (i.read() * np.int64(6364136223846793005) + np.int64(1442695040888963407)) % 3
    np.testing.assert_array_equal(r.read(), np.eye(3)[chosen])


@fl.kernel
def leg_of(u: Read, i: Read, r: Inc):
    k = i[0]
    r[0] += u[k][1]  # fault


@fl.kernel
def entry_of(w: Read, u: Read, i: Read, r: Write):
    total = 0.0
    for j in range(len(u)):
        total += w[j] * u[j]
    r[0] = total + u[i[0]]  # fault


def ring(ctx: fl.Context) -> tuple[fl.Set, fl.Set, fl.TableMap]:
    nodes, edges = ctx.set(N, "nodes"), ctx.set(N, "edges")
    table = np.stack([np.arange(N), (np.arange(N) + 1) % N], 1)
    return nodes, edges, ctx.map(edges, nodes, table, "e2n")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("leg", [-1, 2])
def test_legs(device: str, leg: int) -> None:
    """A leg that is known at run time only."""
    ctx = context(device, check=True)
    nodes, edges, e2n = ring(ctx)
    u, i = ctx.dat(nodes, np.ones((N, 2)), "u"), ctx.dat(edges, np.zeros(N, "int64"), "i")
    r = ctx.dat(nodes, np.zeros(N), "r")
    loop = Loop(leg_of, edges, u[e2n], i, r[e2n])
    loop()
    planted(i, leg)
    found(loop, f"leg {leg} of 'u' is outside 0 ... 1", BAD)
    assert r.read().sum() == N


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("index", [-1, "length"])
def test_rows(device: str, index: Any) -> None:
    """An index into a row of a ragged map, whose length is that of its element."""
    ctx = context(device, check=True)
    rows, columns = ctx.set(N, "rows"), ctx.set(N, "columns")
    lengths = 1 + np.arange(N) % 5
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ragged = ctx.ragged(rows, columns, offsets, np.arange(offsets[-1]) % N, "matrix")
    u, w = ctx.dat(columns, np.ones(N), "u"), ctx.dat(ragged.entries, np.ones(offsets[-1]), "w")
    i, r = ctx.dat(rows, lengths - 1, "i"), ctx.dat(rows, np.zeros(N), "r")
    loop = Loop(entry_of, rows, w[ragged.to_entries], u[ragged], i, r)
    loop()
    np.testing.assert_allclose(r.read(), lengths + 1)
    bad = int(lengths[BAD]) if index == "length" else index
    values = i.read()
    values[BAD] = bad
    i.write(values)
    found(loop, f"leg {bad} of 'u' is outside 0 ... {lengths[BAD] - 1}", BAD)


@fl.kernel
def scaled_row(a: RW, x: Read, d: Read):
    for j in range(len(a)):
        a[j] = a[j] - x[j]
    for j in range(len(a)):
        a[j] = 1.0 / a[j]  # fault
    a[0] = a[0] * d[0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", [fl.CSR(), pytest.param(fl.SlicedELL(8), marks=pytest.mark.long)])
def test_entries(device: str, layout: Any) -> None:
    """Rows that are changed and read again, in any layout."""
    ctx = context(device, check=True)
    rows, columns = ctx.set(N, "rows"), ctx.set(N, "columns")
    offsets = np.concatenate([[0], np.cumsum(1 + np.arange(N) % 4)])
    matrix = ctx.ragged(rows, columns, offsets, np.arange(offsets[-1]) % N, "matrix", layout)
    a = ctx.dat(matrix.entries, np.full(offsets[-1], 3.0), "a")
    x, d = ctx.dat(columns, np.ones(N), "x"), ctx.dat(rows, np.full(N, 8.0), "d")
    loop = Loop(scaled_row, rows, a[matrix.to_entries], x[matrix], d)
    loop()
    np.testing.assert_allclose(a.read()[:5], [4.0, 4.0, 0.5, 4.0, 0.5])
    values = a.read()
    values[offsets[BAD] + 1] = 1.0
    a.write(values)
    found(loop, "division by zero: 1.0 / 0.0", BAD)


@fl.kernel
def of_slots(f: RW, w: Read):
    f[0] = f[0] / w[0]  # fault
    f[1] = 2.0 * f[0]


@pytest.mark.parametrize("device", DEVICES)
def test_slots(device: str) -> None:
    """Single components of elements, read and written."""
    ctx = context(device, check=True)
    links, cells = ctx.set(N, "links"), ctx.set(N, "cells")
    both = np.repeat(np.arange(N)[:, None], 2, 1)
    slots = ctx.slots(links, cells, both, np.broadcast_to([2, 0], (N, 2)), "slots")
    f, w = ctx.dat(cells, np.ones((N, 3)), "f", layout=fl.SoA()), ctx.dat(links, np.ones(N), "w")
    loop = Loop(of_slots, links, f[slots], w)
    loop()
    np.testing.assert_allclose(f.read()[BAD], [2.0, 1.0, 1.0])
    planted(w, 0.0)
    found(loop, "division by zero: 1.0 / 0.0", BAD)


# -------------------------------------------------------------------------------------- kinds of loops


@fl.kernel
def flux(x: Read, r: Inc):
    f = 1.0 / (x[1] - x[0])  # fault
    r[0] += f
    r[1] -= f


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("strategy", [None, pytest.param("two_pass", marks=pytest.mark.long)])
def test_through_a_map(device: str, strategy: str | None) -> None:
    """Increments through a map, however their races are avoided."""
    ctx = context(device, check=True)
    nodes, edges, e2n = ring(ctx)
    x = ctx.dat(nodes, np.arange(N) ** 1.5, "x")
    r = ctx.dat(nodes, np.zeros(N), "r")
    loop = Loop(flux, edges, x[e2n], r[e2n], schedule=fl.Schedule(strategy=strategy))
    loop()
    before = r.read()
    values = x.read()
    values[BAD + 1] = values[BAD]
    x.write(values)
    found(loop, "division by zero: 1.0 / 0.0", BAD)
    np.testing.assert_array_equal(r.read(), before)


@fl.kernel
def laplace(u: Read, v: Write, most: Max, *, nu: float):
    v[0] = nu * (u[0] + u[2] - 2.0 * u[1])  # fault
    most[0] = max(most[0], v[0])


@pytest.mark.parametrize("device", DEVICES)
def test_grid(device: str) -> None:
    """A stencil on a lattice; the place is said, and a constant that was changed counts."""
    ctx = context(device, check=True)
    grid = ctx.grid((6, 40), "lattice", periodic=True)
    line = ctx.stencil(grid, [(0, -1), (0, 0), (0, 1)])
    u = ctx.dat(grid, np.sin(np.arange(240.0)).reshape(6, 40), "u")
    v, most = ctx.dat(grid, np.zeros((6, 40)), "v"), ctx.scalar(-math.inf, "most")
    loop = Loop(laplace, grid, u[line], v, most, nu=1.0)
    loop()
    assert math.isfinite(most.value)
    values = u.read()
    values[3, 7] = 1e300
    u.write(values)
    loop()
    error = found(lambda: loop(nu=1e30), "inf is written to 'v'", 3 * 40 + 6)
    assert "(3, 6)" in str(error)


@fl.kernel
def settled(u: RW, i: Read):
    u[0] = u[0] + 1.0
    u[1] = u[0] - 3.0
    u[2] = 1.0 / u[1]  # fault
    u[i[0]] = 0.5


@pytest.mark.parametrize("device", DEVICES)
def test_read_after_written(device: str) -> None:
    """What a kernel reads of what it has written counts, in a loop over a subset."""
    ctx = context(device, check=True)
    s = ctx.set(N, "items")
    u = ctx.dat(s, np.zeros((N, 3)), "u")
    i = ctx.dat(s, np.full(N, 2), "i")
    loop = Loop(settled, ctx.subset(s, np.arange(BAD, N, 2)), u, i)
    loop()
    values = u.read()
    np.testing.assert_allclose(values[BAD], [1.0, -2.0, 0.5])
    values[[BAD + 1, BAD + 6], 0] = 2.0  # the first is no member
    u.write(values)
    found(loop, "division by zero: 1.0 / 0.0", BAD + 6)


@fl.kernel
def searched(a: Read, r: Write):
    k = 0
    x = a[0]
    while k < 20 and 1.0 / x > 1e-3:  # fault
        x = x - 1.0
        k += 1
    r[0] = x


@pytest.mark.parametrize("device", DEVICES)
def test_while(device: str) -> None:
    """A loop whose test goes wrong ends."""
    ctx = context(device, check=True)
    s = ctx.set(N, "items")
    a = ctx.dat(s, np.full(N, 7.5), "a")
    loop = Loop(searched, s, a, ctx.dat(s, np.zeros(N), "r"))
    loop()
    planted(a, 4.0)
    found(loop, "division by zero: 1.0 / 0.0", BAD)


def _on_ranks(comm: Comm) -> tuple[str, str, float]:
    ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False, check=True)
    grid = ctx.grid((8, 40), "lattice", periodic=True, cut=(2, 1))
    line = ctx.stencil(grid, [(-1, 0), (0, 0), (1, 0)])
    whole_field = np.arange(320.0).reshape(8, 40)
    whole_field[0, 11] = 1e300
    u, v = ctx.dat(grid, grid.local(whole_field), "u"), ctx.dat(grid, grid.local(np.zeros((8, 40))), "v")
    most = ctx.scalar(-math.inf, "most")
    loop = Loop(laplace, grid, u[line], v, most, nu=1.0)
    loop()
    try:
        loop(nu=1e30)
    except LoopCheckError as error:
        return error.what, str(error), float(most.value)
    return "", "", 0.0


def test_ranks() -> None:
    """The rank that finds it says so, and all ranks end with the same error."""
    told = run_threads(2, _on_ranks)
    assert told[0] == told[1]
    assert "is written to 'v'" in told[0][0]
    assert "rank 0" in told[0][1]


@pytest.mark.parametrize("device", DEVICES)
def test_tables(device: str) -> None:
    """A map whose table was changed after it was declared leads out of its set."""
    ctx = context(device, check=True)
    nodes, edges, e2n = ring(ctx)
    x, r = ctx.dat(nodes, np.arange(N) ** 1.5, "x"), ctx.dat(nodes, np.zeros(N), "r")
    loop = Loop(flux, edges, x[e2n], r[e2n])
    loop()
    for value in (-1, N):
        e2n.table[5, 1] = value
        with pytest.raises(LoopCheckError, match=rf"entry \[5, 1\] of map 'e2n' is {value}: outside 0 \.\.\. {N - 1}"):
            loop()
