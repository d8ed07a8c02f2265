"""The benchmark of flow on edges."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.dtypes import AoS, SoA
from fluxloom.core.errors import CaseError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.solvers.edges.transport import EdgeTransport
from fluxloom_lab.bench.flows.edge_flow import EdgeFlowBench
from fluxloom_lab.bench.flows.edge_flow_cavity import NAMED, EdgeFlowOptions, cavities, cavity_flow
from fluxloom_lab.bench.registry import benches

SMALL = EdgeFlowOptions(cells="4", iterations=2, rounds=1, threads=1)


class Meter:
    """Measures nothing: that of a processor moves gigabytes."""

    def measure(self, passes: int) -> SimpleNamespace:
        """Return a bandwidth."""
        return SimpleNamespace(copy_gbs=10.0 * passes)


@pytest.fixture(autouse=True)
def meter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluxloom_lab.bench.flows.edge_flow.meter_for", lambda *_: Meter())


def run(**options: Any) -> dict[str, Any]:
    """Return the record of a small run."""
    bench = benches()["edge_flow"]
    return bench.run(EdgeFlowOptions(**(vars(SMALL) | options)), lambda _: None).as_json()


def test_record_of_a_flow() -> None:
    record = run()
    times, work = record["metrics"]["parts"][0], record["metrics"]["work"][0]
    parts = [times[f"{name}_ms"] for name in ("momentum", "fill", "pressure", "correction")]
    assert record["sizes"] == {"n": 125, "edges": work["edges"]}
    assert work["edges"] == 3 * 4 * 25 + 3 * 16 * 5 + 64
    assert min(*parts, times["in_ms"], times["out_ms"]) > 0
    assert max(parts) < times["step_ms"] == pytest.approx(1e3 * record["seconds"])
    assert times["best_ms"] <= times["step_ms"]
    assert 5 < times["iterations"] < 60
    assert work["percent_of_copy"] == pytest.approx(100 * work["gbs"] / record["copy_gbs"])
    calls = {row["name"]: row["calls"] for row in record["loops"]}
    assert calls["edges.stage"] == calls["edges.convection"] == 4
    assert calls["edges.continuity"] == calls["edges.correct"] == 1


def test_record_of_a_scalar() -> None:
    record = run(model="transport")
    times = record["metrics"]["parts"][0]
    assert {"coefficients_ms", "stages_ms"} <= set(times)
    assert {row["name"]: row["calls"] for row in record["loops"]}["edges.transport_stage"] == 4


def uses(loop: Any, data: Dat) -> bool:
    """Whether a loop has a dat among its arguments."""
    return isinstance(loop, Loop) and any(a.data is data for a in loop.bound.arguments)


def answers(chain: Chain, name: str, entries: Dat) -> list[bool]:
    """Return which numbers of an entry change the results of a loop, each made infinite by turns."""
    loop = next(item for item in chain.loops if item.name == name)
    written = [data for data in loop.written if isinstance(data, Dat)]
    held, kept = entries.read(), [data.read() for data in written]
    found = []
    for number in range(entries.dim):
        poisoned = held.copy()
        poisoned[:, number] = np.nan
        entries.write(poisoned)
        loop()
        found.append(any(bool(np.isnan(data.read()).any()) for data in written))
        for data, values in zip(written, kept, strict=True):
            data.write(values)
    entries.write(held)
    return found


def test_what_loops_read_is_what_they_move() -> None:
    """Each loop once with each layout: the numbers of the edges that it leaves alone move with the others, or not."""
    given = {}
    for layout in ("soa", "aos"):
        cavity = cavities(EdgeFlowOptions(cells="2", layout=layout), fl.Context("reference"))[0]()
        flow, entries = cavity_flow(cavity, None), cavity.operators.entries
        scalar = EdgeTransport(cavity.mesh, flow.u, 1e-3, operators=cavity.operators)
        flow.step(cavity.dt)
        scalar.initialise(1.0)
        scalar.step(cavity.dt)
        chains = {loop.name: (chain, loop) for chain in (*flow.chains, *scalar.chains) for loop in chain.loops}
        given[layout] = {name: (chain, loop) for name, (chain, loop) in chains.items() if uses(loop, entries)}
        assert isinstance(entries.layout, AoS if layout == "aos" else SoA)
    assert {"edges.convection", "edges.stage", "edges.continuity", "edges.prepare"} <= set(given["soa"])
    for name, (chain, loop) in given["soa"].items():
        entries = next(a.data for a in loop.bound.arguments if isinstance(a.data, Dat) and a.data.dim == 16)
        apart = given["aos"][name][1].useful_bytes - loop.useful_bytes
        assert apart == (16 - sum(answers(chain, name, entries))) * 8 * entries.set.size > 0, name


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nodes": "2"}, "--nodes '2': numbers of points, as 3k, 24k or 185k are wanted, from 2 to 256"),
        ({"cells": "x"}, "--cells 'x': numbers of intervals a side of the box are wanted"),
        ({"nodes": "3k", "cells": "4"}, "--nodes and --cells both give the mesh"),
        ({"preconditioner": "jacoby"}, "--preconditioner 'jacoby'; did you mean 'jacobi'"),
        ({"model": "transport", "preconditioner": "jacobi"}, "leave out --preconditioner"),
        ({"model": "flows"}, "--model 'flows'; did you mean 'flow'"),
        ({"device": "reference"}, "runs kernels as Python"),
    ],
)
def test_refusals(options: dict[str, Any], words: str) -> None:
    with pytest.raises(CaseError) as caught:
        EdgeFlowBench().run(EdgeFlowOptions(**options), print)
    assert words in str(caught.value)


def test_named_sizes_are_those_published() -> None:
    published = {"3k": 3347, "24k": 24202, "185k": 184755}
    for name, points in published.items():
        assert (NAMED[name].side + 1) ** 3 == pytest.approx(points, rel=0.01)
