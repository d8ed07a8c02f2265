"""Sets so large that kernels take other forms, and work that is still under way; beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Max, Min, Read
from fluxloom.dsl.run.chain import Chain

from .harness import DEVICES, context

N = 2**20 + 4321


@fl.kernel
def sums(u: Read, total: Inc, low: Min, high: Max, n: Inc):
    total[0] += u[0]
    total[1] += u[0] * u[0]
    low[0] = min(low[0], u[0])
    high[0] = max(high[0], u[0])
    if u[0] > 0.5:
        n[0] += 1


def results(ctx: fl.Context) -> list[fl.Global]:
    return [ctx.scalar([1.0, 2.0]), ctx.scalar(0.9), ctx.scalar(0.1), ctx.scalar(3)]


def check(found: list[fl.Global], u: np.ndarray, times: int = 1) -> None:
    total, low, high, n = (np.array(g.value) for g in found)
    np.testing.assert_allclose(total, [1 + times * u.sum(), 2 + times * (u * u).sum()], rtol=1e-13)
    assert low == min(0.9, u.min())
    assert high == max(0.1, u.max())
    assert n == 3 + times * np.count_nonzero(u > 0.5)


@pytest.mark.parametrize("device", DEVICES)
def test_reductions(device: str) -> None:
    """Over a set, a part of it, and a lattice."""
    ctx, rng = context(device), np.random.default_rng(0)
    values, mask = rng.random(N), rng.random(N) < 0.999
    over, grid = ctx.set(N, "over"), ctx.grid((1030, 1021), ghost=(0, 1))
    u, v = ctx.dat(over, values), ctx.dat(grid, values[: grid.size].reshape(grid.shape))
    found = [results(ctx) for _ in range(3)]
    places = (over, ctx.subset(over, mask), grid)
    loops = [Loop(sums, o, d, *g) for o, d, g in zip(places, (u, u, v), found, strict=True)]
    Chain(loops, fuse=False)()
    for got, want in zip(found, (values, values[mask], values[: grid.size]), strict=True):
        check(got, want)


@fl.kernel
def flux(u: Read, r: Inc):
    f = u[0] - u[1]
    r[0] += f
    r[1] -= 0.5 * f


@fl.kernel
def advance(u: RW, r: RW, total: Inc):
    total[0] += r[0] * r[0]
    u[0] += 0.1 * r[0]
    r[0] = 0.0


@pytest.mark.parametrize("device", DEVICES)
def test_a_fused_chain(device: str) -> None:
    ctx, rng = context(device), np.random.default_rng(0)
    nodes, edges = ctx.set(N, "nodes"), ctx.set(N - 1, "edges")
    ends = np.stack([np.arange(N - 1), np.arange(1, N)], 1)
    m, start = ctx.map(edges, nodes, ends, "m"), rng.random(N)
    u, r, total = ctx.dat(nodes, start), ctx.dat(nodes), ctx.scalar(0.0)
    chain = Chain([Loop(flux, edges, u[m], r[m]), Loop(advance, nodes, u, r, total)], transient=[r])
    want, square = start.copy(), 0.0
    for _ in range(3):
        chain()
        f = want[:-1] - want[1:]
        residual = np.concatenate([f, [0.0]]) - np.concatenate([[0.0], 0.5 * f])
        square += float((residual * residual).sum())
        want += 0.1 * residual
    assert chain.fused
    np.testing.assert_allclose(u.read(), want, rtol=1e-12, atol=1e-14)
    assert float(total.value) == pytest.approx(square, rel=1e-12)


@fl.kernel
def raised(u: RW, g: Read, *, by: float):
    u[0] += by + g[0]


@pytest.mark.parametrize("device", DEVICES)
def test_the_host_does_not_overtake(device: str) -> None:
    """Constants, globals and values are changed after the loops that were asked for before, and before the next."""
    ctx = context(device)
    over = ctx.set(N, "over")
    u, g = ctx.dat(over), ctx.scalar(0.0)
    loop = Loop(raised, over, u, g, by=1.0)
    want = 0.0
    for k in range(6):
        for _ in range(10):
            loop()
        want += 10 * (loop.constants["by"] + float(k))
        loop.set(by=float(k))
        g.value = k + 1.0
    np.testing.assert_array_equal(u.read(), want)
    for _ in range(10):
        loop()
    u.write(0.5)  # what was asked for must not come after it
    loop(by=2.0)
    np.testing.assert_array_equal(u.read(), 0.5 + 2.0 + 6.0)
