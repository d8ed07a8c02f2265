"""Random meshes, strategies and kernels against the reference device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Loop
from fluxloom.kernel import Kernel

from .harness import LAYOUTS, STRATEGIES, Values, build, compare, context, everywhere, schedules, together
from .kernels import extremes, flux, uneven

pytest.importorskip("hypothesis", reason="hypothesis makes the random meshes and kernels")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fluxloom_lab.attack.kernels import left_by
from fluxloom_lab.attack.loops.text import TEMPLATE, Generator, indented, load_module
from tests.attacked import attacked
from tests.unit.kernel.test_random import renamed

MODEST = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
DEVICES = {"opencl": 5, "cuda": 15}
"""Devices of work items, and how many examples they try."""


def one_loop(ctx, schedule=None, layout=None, dtype="float64", *, kernel, mesh, subset=None):
    """A case: one loop over a random table."""
    edges, nodes = mesh
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
    return [Loop(kernel, over, *arguments, schedule=schedule, **constants)], {"r": r, "s": s}


@st.composite
def meshes(draw):
    """A table with repeats, of any size from nothing to a few packs."""
    nodes = draw(st.integers(1, 60))
    edges = draw(st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=150))
    return edges, nodes


CHOICES: dict[str, Any] = {
    "mesh": meshes(),
    "dtype": st.sampled_from(["float64", "float32"]),
    "layout": st.sampled_from(["aos", "soa"]),
    "kernel": st.sampled_from([flux, uneven, extremes]),
    "seed": st.integers(0, 3),
}


def some(mesh, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(len(mesh[0])) < 0.5


def reference(dtype: str, **options: Any) -> Values:
    return build(one_loop, fl.Context("reference"), dtype=dtype, **options).run()


@MODEST
@given(strategy=st.sampled_from(list(STRATEGIES)), lanes=st.sampled_from([1, 8]), **CHOICES)
def test_random_meshes(mesh, strategy, lanes, dtype, layout, kernel, seed) -> None:
    schedule = fl.Schedule(**{**STRATEGIES[strategy].__dict__, "lanes": lanes})
    if kernel is extremes and strategy == "atomic":
        schedule = None
    subset = some(mesh, seed) if seed == 3 and not strategy.startswith(("gather", "two")) else None
    options = {"kernel": kernel, "mesh": mesh, "subset": subset, "dtype": dtype}
    got = build(one_loop, context("cpu", threads=2), schedule=schedule, layout=LAYOUTS[layout], **options).run()
    compare(got, reference(**options), dtype)


@pytest.mark.parametrize("device", everywhere([]))
def test_random_meshes_on_devices(device: str) -> None:
    """Every strategy of every example, as one unit."""

    @settings(MODEST, max_examples=DEVICES[device])
    @given(**CHOICES)
    def run(mesh, dtype, layout, kernel, seed) -> None:
        options = {"kernel": kernel, "mesh": mesh, "subset": some(mesh, seed) if seed == 3 else None, "dtype": dtype}
        want = reference(**options)
        for name, got in together(one_loop, schedules(device), device, layout=LAYOUTS[layout], **options).items():
            compare(got, want, dtype, name)

    run()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("seed", [0, 6, 11])
def test_kernels_of_other_names_are_compiled_once(
    device: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path / "cache"))
    text, found = TEMPLATE.format(body=indented(Generator(seed).block(3))), []
    for number, form in enumerate((text, renamed(text, seed), renamed(text, seed + 1))):
        module = load_module(tmp_path, form, f"form{number}")
        kernel = next(item for item in vars(module).values() if isinstance(item, Kernel))
        schedule = fl.Schedule(lanes=8 if device == "cpu" else 0, deterministic="global")
        found.append(left_by(device, kernel, seed, schedule, special=False))
        np.testing.assert_equal(found[-1], found[0])
    kept = [path for path in (tmp_path / "cache").iterdir() if path.suffix in (".so", ".cubin")]
    assert len([path for path in kept if "runtime" not in path.name]) == 1


@pytest.mark.parametrize("device", everywhere([]))
def test_random_kernels(device: str) -> None:
    attacked("kernels", "--only", "kernels,special", "--trials", "3", "--device", device)
