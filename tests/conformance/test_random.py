"""Random meshes, strategies and kernels against the reference device."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fluxloom as fl
from fluxloom import Loop
from tests.unit.kernel.conftest import load_module
from tests.unit.kernel.test_random import TEMPLATE, Generator, indented

from .harness import LAYOUTS, STRATEGIES, compare
from .kernels import extremes, flux, uneven

MODEST = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def run(device: str, kernel, edges, nodes: int, dtype: str, layout, schedule, subset) -> dict[str, np.ndarray]:
    ctx = fl.Context(device, threads=2, tuning=False)
    rng = np.random.default_rng(len(edges) + nodes)
    e, n = ctx.set(len(edges), "edges"), ctx.set(nodes, "nodes")
    over = e if subset is None else ctx.subset(e, subset)
    m = ctx.map(e, n, np.array(edges, dtype=int).reshape(len(edges), 2), "m")
    w = ctx.dat(e, rng.random(len(edges)), dtype=dtype, layout=layout)
    u, r, s = (ctx.dat(n, rng.random((nodes, 3)), dtype=dtype, layout=layout) for _ in range(3))
    arguments, constants = [w, u[m], r[m]], {}
    if kernel is extremes:
        arguments.append(s[m])
    if kernel is flux:
        constants["n"] = 3
    Loop(kernel, over, *arguments, schedule=schedule, **constants)()
    return {"r": r.read(), "s": s.read()}


@st.composite
def meshes(draw):
    """A table with repeats, of any size from nothing to a few packs."""
    nodes = draw(st.integers(1, 60))
    edges = draw(st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=150))
    return edges, nodes


@MODEST
@given(
    mesh=meshes(),
    strategy=st.sampled_from(list(STRATEGIES)),
    lanes=st.sampled_from([1, 8]),
    dtype=st.sampled_from(["float64", "float32"]),
    layout=st.sampled_from(["aos", "soa"]),
    kernel=st.sampled_from([flux, uneven, extremes]),
    seed=st.integers(0, 3),
)
def test_random_meshes(mesh, strategy, lanes, dtype, layout, kernel, seed) -> None:
    edges, nodes = mesh
    schedule = fl.Schedule(**{**STRATEGIES[strategy].__dict__, "lanes": lanes})
    if kernel is extremes and strategy == "atomic":
        schedule = None
    subset = None
    if seed == 3 and not strategy.startswith(("gather", "two")):
        subset = np.random.default_rng(seed).random(len(edges)) < 0.5
    options = (kernel, edges, nodes, dtype)
    got = run("cpu", *options, LAYOUTS[layout], schedule, subset)
    compare(got, run("reference", *options, None, None, subset), dtype)


def random_kernel(seed: int, folder: Path) -> ModuleType:
    """A kernel with random statements; see `tests.unit.kernel.test_random`."""
    return load_module(folder, TEMPLATE.format(body=indented(Generator(seed).block(3))), f"random_{seed}")


def results(device: str, kernel, seed: int, lanes: int) -> tuple[dict[str, np.ndarray], bool]:
    rng = np.random.default_rng(seed)
    size = 41
    ctx = fl.Context(device, tuning=False)
    over, points = ctx.set(size, "over"), ctx.set(2 * size, "points")
    m = ctx.map(over, points, rng.permutation(2 * size).reshape(size, 2), "m")
    q, n = ctx.dat(over, rng.uniform(-1, 1, (size, 3))), ctx.dat(over, rng.integers(0, 4, (size, 2)))
    x, r = ctx.dat(points, rng.uniform(-1, 1, (2 * size, 2))), ctx.dat(over, rng.uniform(-1, 1, (size, 3)))
    Loop(
        kernel,
        over,
        q,
        n,
        x[m],
        r,
        nu=0.75,
        flag=bool(seed % 2),
        schedule=fl.Schedule(lanes=lanes, deterministic="global"),
    )()
    return {"x": x.read(), "r": r.read()}


def kernels_agree(seed: int) -> None:
    """Compare where the numbers are tame: branches may part where rounding decides, integers may overflow."""
    with tempfile.TemporaryDirectory() as folder:
        module = random_kernel(seed, Path(folder))
        try:
            want = results("reference", module.k_, seed, 1)
        except OverflowError:
            return  # int() of an infinity, which Python refuses
        for lanes in (1, 8):
            got = results("cpu", module.k_, seed, lanes)
            for name, right in want.items():
                left = got[name]
                bad = ~np.isclose(left, right, rtol=1e-9, atol=1e-12, equal_nan=True)
                bad &= np.isfinite(right) & (np.abs(right) < 1e12)
                # an odd element may take another branch; a wrong translation shows in most of them
                assert bad.mean() < 0.05, f"seed {seed}, lanes {lanes}: {name}\n{module.k_.source.text}"


@settings(MODEST, max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_random_kernels(seed: int) -> None:
    kernels_agree(seed)


@pytest.mark.long
@settings(MODEST, max_examples=400)
@given(seed=st.integers(0, 10**6))
def test_many_random_kernels(seed: int) -> None:
    kernels_agree(seed)
