"""Conditions at walls, sides and bodies against whole-array formulas, from random populations, for every streaming."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.dsl.run.chain import Chain
from fluxloom.lbm.boundaries import (
    AntiBounceBack,
    Body,
    BounceBack,
    Outflow,
    Pressure,
    RegularisedCells,
    Slip,
    Velocity,
    Wall,
    ZouHe,
)
from fluxloom.lbm.cells.links import find_links
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27, Lattice
from fluxloom.lbm.shapes.shapes import Circle, Sphere
from tests import lattice_oracle as plain
from tests.conformance.harness import LAYOUTS, rest_is_long
from tests.lattice_boundaries_flow import Flow

STEPS = 3
TOLERANCE = {"float64": 1e-13, "float32": 2e-6, "float16": 2e-3}


@dataclass(frozen=True)
class Case:
    """A box with conditions, as the library and as the oracle have them."""

    lattice: Lattice
    shape: tuple[int, ...]
    sides: Mapping[str, tuple[Any, Any]]
    bodies: tuple[tuple[Body, Any], ...] = ()
    force: tuple[float, ...] = ()


def swirl(x: np.ndarray) -> np.ndarray:
    """Return some velocity that differs from place to place."""
    return 0.02 * np.cos(x + 0.3 * np.arange(x.shape[1]))


def dense(x: np.ndarray) -> np.ndarray:
    """Return some density that differs from place to place."""
    return 1.0 + 0.01 * np.sin(x.sum(axis=1))


PLANE = np.random.default_rng(1).uniform(-0.02, 0.02, (7, 2))
"""Velocities over a side of seven cells."""

BALL = Circle((3.2, 4.6), 1.7), Sphere((3.1, 2.9, 3.4), 1.4)

CASES = {
    "walls and slip": Case(
        D2Q9,
        (7, 9),
        {
            "ymin": (Wall(measure=True), plain.Bounce()),
            "ymax": (Wall(velocity=swirl, measure=True, center=(1.0, 2.0), permeable=True), plain.Bounce(swirl)),
            "xmin": (Slip(), plain.Slip()),
            "xmax": (Slip(), plain.Slip()),
        },
        ((Body("disc", Circle((3.3, 0.4), 1.9), Wall(measure=True, center=(3.0, 4.0))), plain.Bounce()),),
    ),
    "interpolated": Case(
        D2Q9,
        (8, 9),
        {"ymin": (Wall(), plain.Bounce()), "ymax": (Wall(), plain.Bounce())},
        (
            (Body("turning", BALL[0], Wall(swirl, True, True, (3.0, 4.0), permeable=True)), plain.Bounce(swirl, True)),
            (Body("low", Circle((0.6, 8.2), 1.2), Wall(interpolated=True, measure=True)), plain.Bounce(None, True)),
        ),
        force=(2e-4, -1e-4),
    ),
    "zou-he": Case(
        D2Q9,
        (7, 6),
        {
            "xmin": (Velocity(PLANE, ZouHe()), plain.Velocity(PLANE, "zou-he")),
            "xmax": (Pressure(dense, ZouHe()), plain.Pressure(dense, "zou-he")),
            "ymin": (Wall(), plain.Bounce()),
            "ymax": (Slip(), plain.Slip()),
        },
        force=(2e-4, -1e-4),
    ),
    "regularised": Case(
        D2Q9,
        (7, 6),
        {
            "xmin": (Pressure(1.01, RegularisedCells()), plain.Pressure(1.01)),
            "xmax": (Velocity(swirl), plain.Velocity(swirl)),
            "ymin": (Wall(velocity=(0.0, 0.02)), plain.Bounce((0.0, 0.02))),
            "ymax": (Wall(), plain.Bounce()),
        },
        force=(2e-4, -1e-4),
    ),
    "half a cell beyond": Case(
        D2Q9,
        (7, 6),
        {
            "xmin": (Velocity(PLANE, BounceBack()), plain.Bounce(PLANE)),
            "xmax": (Pressure(dense, scheme=AntiBounceBack(rate=0.03)), plain.AntiBounce(dense, 0.03)),
            "ymin": (Wall(), plain.Bounce()),
            "ymax": (Slip(), plain.Slip()),
        },
        ((Body("at the side", Circle((3.0, 6.1), 1.8)), plain.Bounce()),),
        force=(2e-4, -1e-4),
    ),
    "outflow": Case(
        D2Q9,
        (7, 6),
        {
            "xmin": (Velocity((0.01, 0.03)), plain.Velocity((0.01, 0.03))),
            "xmax": (Outflow(), plain.Convective(None, 1.0, 0.01)),
            "ymin": (Wall(), plain.Bounce()),
            "ymax": (Slip(), plain.Slip()),
        },
    ),
    "given outflow": Case(
        D2Q9,
        (7, 6),
        {
            "xmin": (Outflow(speed=inf, density=1.02, rate=0.05), plain.Convective(inf, 1.02, 0.05)),
            "xmax": (Outflow(speed=0.2, density=None), plain.Convective(0.2)),
        },
    ),
    "box": Case(
        D3Q19,
        (6, 7, 8),
        {
            "zmin": (Wall(velocity=swirl, measure=True, center=(1.0, 2.0, 3.0), permeable=True), plain.Bounce(swirl)),
            "zmax": (Slip(), plain.Slip()),
            "ymin": (Slip(), plain.Slip()),
            "ymax": (Wall(), plain.Bounce()),
            "xmin": (Velocity(swirl, ZouHe()), plain.Velocity(swirl, "zou-he")),
            "xmax": (Pressure(dense, scheme=AntiBounceBack(absorbing=False)), plain.AntiBounce(dense)),
        },
        ((Body("ball", BALL[1], Wall(swirl, True, True, (3.0, 3.0, 3.0), permeable=True)), plain.Bounce(swirl, True)),),
        force=(1e-4, 2e-4, -1e-4),
    ),
    "tunnel": Case(
        D3Q27,
        (6, 5, 7),
        {
            "xmin": (Velocity(swirl), plain.Velocity(swirl)),
            "xmax": (Outflow(), plain.Convective(None, 1.0, 0.01)),
            "ymin": (Slip(), plain.Slip()),
            "ymax": (Slip(), plain.Slip()),
        },
        ((Body("ball", BALL[1], Wall(measure=True, center=(3.0, 3.0, 3.0))), plain.Bounce()),),
    ),
    "duct": Case(
        D3Q19,
        (6, 5, 7),
        {
            "zmin": (Pressure(dense, ZouHe()), plain.Pressure(dense, "zou-he")),
            "zmax": (Velocity(swirl), plain.Velocity(swirl)),
            "ymin": (Wall(), plain.Bounce()),
            "ymax": (Slip(), plain.Slip()),
        },
        force=(1e-4, 2e-4, -1e-4),
    ),
}


def start(case: Case) -> np.ndarray:
    """Return random ``g``."""
    return 2e-3 * np.random.default_rng(5).standard_normal((*case.shape, case.lattice.q))


def build(case: Case, **options: Any) -> Flow:
    """Return the flow, filled."""
    sides = {name: ours for name, (ours, _) in case.sides.items()}
    bodies = [body for body, _ in case.bodies]
    flow = Flow(case.shape, sides, bodies, lattice=case.lattice, viscosity=0.04, force=case.force, **options)
    flow.fill(start(case))
    return flow


def measured(flow: Flow) -> dict[str, np.ndarray]:
    """Return forces and torques by name."""
    found = {name: part.force.value for name, part in flow.parts.items() if part.force is not None}
    turned = {f"{name} torque": part.torque.value for name, part in flow.parts.items() if part.torque is not None}
    return found | turned


def _excess(flow: Flow, case: Case) -> dict[int, float]:
    """Return by how many cells the bodies that have fluid cells all round are larger than those that they have."""
    found = {}
    for number, (body, _) in enumerate(case.bodies, start=1):
        low, high = body.shape.bounds()
        volume = body.shape.measure()
        ends = zip(low, high, case.shape, flow.box.periodic, strict=True)
        if volume is not None and all(p or (a > 0.0 and b < n - 1.0) for a, b, n, p in ends):
            found[number] = volume - np.count_nonzero(flow.labels == number)
    return found


@cache
def wanted(name: str, steps: int = STEPS) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return ``g`` of the fluid and forces, by the oracle."""
    case = CASES[name]
    flow = build(case)
    labels = flow.labels[flow.box.inside]
    # the oracle has the rules of edges from the conditions' order, and fractions from the shapes
    priority = sorted(case.sides, key=lambda side: (case.sides[side][0].order, list(case.sides).index(side)))
    fractions = np.full((*case.shape, case.lattice.q), 0.5)
    shapes = [body.shape for body, _ in case.bodies]
    mirrors = {side: isinstance(ours, Slip) for side, (ours, _) in case.sides.items() if isinstance(ours, Slip | Wall)}
    for links in find_links(flow.box, case.lattice, flow.labels, shapes, priority, mirrors).values():
        at = flow.box.coordinates(links.cells)
        fractions[(*at, links.directions)] = links.fractions
    conditions: dict[Any, Any] = {side: replace(theirs) for side, (_, theirs) in case.sides.items()}
    conditions |= {number + 1: theirs for number, (_, theirs) in enumerate(case.bodies)}
    for condition in conditions.values():
        if isinstance(condition, plain.Convective | plain.AntiBounce):
            condition.memory = {}
    oracle = plain.Oracle(
        case.lattice, case.shape, viscosity=0.04, conditions=conditions, labels=labels, fractions=fractions,
        priority=priority, force=case.force or None, mirrors=list(mirrors),
        excess=_excess(flow, case),
    )  # fmt: skip
    w = np.array(case.lattice.weights)
    oracle.f = np.where((labels == 0)[..., None], start(case), 0.0) + w
    oracle.step(steps)
    sums: dict[str, np.ndarray] = {}
    keys: list[tuple[str, Any, Any]] = [(side, side, ours) for side, (ours, _) in case.sides.items()]
    keys += [(body.name, number + 1, body.condition) for number, (body, _) in enumerate(case.bodies)]
    for label, key, ours in keys:
        if isinstance(ours, Wall) and ours.measure:
            sums[label] = oracle.force_on(key)
            if ours.center is not None:
                sums[f"{label} torque"] = oracle.torque_on(key, ours.center)
    return np.where((labels == 0)[..., None], oracle.f - w, 0.0), sums


def check(name: str, flow: Flow, dtype: str = "float64", steps: int = STEPS) -> None:
    """Compare populations and forces."""
    g, sums = wanted(name, steps)
    np.testing.assert_allclose(flow.g, g, atol=TOLERANCE[dtype])
    found = measured(flow)
    assert found.keys() == sums.keys()
    for key, value in found.items():
        np.testing.assert_allclose(value, sums[key], atol=100 * TOLERANCE[dtype])


SHORT = ("walls and slip", "interpolated", "zou-he", "half a cell beyond", "outflow")


@pytest.mark.parametrize("name", rest_is_long([*SHORT, *(k for k in CASES if k not in SHORT)], keep=len(SHORT)))
@pytest.mark.parametrize(
    "streaming", rest_is_long(["pull", "push", "three-phase", "in-place"], keep=1)
)  # fmt: skip
def test_formulas(name: str, streaming: str) -> None:
    """Every condition does what its formula says."""
    flow = build(CASES[name], streaming=streaming)
    flow.step(STEPS)
    check(name, flow)


@pytest.mark.parametrize("name", rest_is_long(["interpolated", "outflow", "regularised", "box"], keep=2))
def test_in_place(name: str) -> None:
    """Both parities of streaming in one buffer."""
    flow = build(CASES[name], streaming="in-place")
    flow.step(STEPS)
    check(name, flow)


@pytest.mark.parametrize(
    ("dtype", "layout"),
    rest_is_long([("float16", "soa"), ("float32", "blocked"), ("float64", "aos"), ("float32", "soa")], keep=1),
)
def test_storage(dtype: str, layout: str) -> None:
    """Any precision and layout; forces are those of the fluid whatever the unit of storage."""
    flow = build(CASES["outflow" if dtype == "float16" else "interpolated"], dtype=dtype, layout=LAYOUTS[layout])
    flow.step(STEPS)
    check("outflow" if dtype == "float16" else "interpolated", flow, dtype)


@pytest.mark.opencl
@pytest.mark.parametrize(
    "name", rest_is_long(["interpolated", "outflow", "zou-he", "box", "half a cell beyond"], keep=1)
)  # fmt: skip
def test_work_items(name: str) -> None:
    """A device of work items."""
    flow = build(CASES[name], context=fl.Context("opencl", tuning=False))
    flow.step(STEPS)
    check(name, flow)


@pytest.mark.cuda
@pytest.mark.parametrize("streaming", ["pull", "push", "three-phase", "in-place"])
@pytest.mark.parametrize("name", CASES)
def test_cuda(name: str, streaming: str) -> None:
    """Every condition and scheme on a GPU."""
    flow = build(CASES[name], streaming=streaming, context=fl.Context("cuda", tuning=False))
    flow.step(STEPS)
    check(name, flow)


@pytest.mark.cuda
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "dtype"), [("outflow", "float16"), ("interpolated", "float32")])
def test_storage_on_a_gpu(name: str, dtype: str, layout: str) -> None:
    """Single and half precision in all layouts."""
    flow = build(CASES[name], dtype=dtype, layout=LAYOUTS[layout], context=fl.Context("cuda", tuning=False))
    flow.step(STEPS)
    check(name, flow, dtype)


def test_reference() -> None:
    """Kernels as Python runs them."""
    flow = build(CASES["outflow"], context=fl.Context("reference"))
    flow.step()
    check("outflow", flow, steps=1)


def test_chain() -> None:
    """Two steps as one chain: sums start anew, what one loop measures the next one reads."""
    flow = build(CASES["outflow"])
    steps = [
        step for p in (0, 1) for step in (*(s for part in flow.parts.values() for s in part.loops(p)), *flow.bulk[p])
    ]
    chain = Chain(steps, name="two steps")
    chain()
    chain()
    flow.steps = 4
    check("outflow", flow, steps=4)
