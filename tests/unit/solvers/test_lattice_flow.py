"""The lattice Boltzmann solver as a whole: schemes of streaming agree, conditions, bodies, forces, mistakes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.lbm.boundaries import Body, Outflow, Pressure, Slip, Velocity, Wall
from fluxloom.lbm.collisions.operators import TRT
from fluxloom.lbm.immersed import ImmersedBody, circle
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27
from fluxloom.lbm.shapes.shapes import Circle, Sphere
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from tests.conformance.harness import rest_is_long
from tests.lattice_names import immersed, lattice_flow


def box(shape: tuple[int, ...], **options: Any) -> LatticeBoltzmann:
    chosen = {"viscosity": 0.05, "lattice": D2Q9, "dtype": "float64", "collision": TRT()} | options
    return lattice_flow(fl.Context("cpu", threads=1, tuning=False), shape, **chosen)


def channel(streaming: str, **options: Any) -> LatticeBoltzmann:
    sides = {"xmin": Velocity((0.0, 0.05)), "xmax": Pressure(1.0), "ymin": Wall(), "ymax": Slip()}
    bodies = [Body("disk", Circle((7.0, 9.0), 3.2), Wall(interpolated=True, measure=True))]
    return box((16, 30), boundaries=sides, bodies=bodies, streaming=streaming, **options)


ODD, EVEN = (7, 12, 4), (8,)
"""Steps with odd and even starts: chains of one step and of two; an even number of steps needs one program only."""


def channel_after(streaming: str, counts: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    flow = channel(streaming)
    flow.initialise(1.0, (0.0, 0.05))
    for count in counts:
        flow.step(count)
    assert flow.steps == sum(counts)
    return flow.velocity(), flow.density(), flow.force_on("disk")


pulled = cache(lambda counts: channel_after("pull", counts))


@pytest.mark.parametrize(
    ("streaming", "counts"),
    rest_is_long(
        [("in-place", ODD), ("push", EVEN), ("three-phase", EVEN), ("push", ODD), ("three-phase", ODD)], keep=3
    ),
)
def test_schemes_agree_in_a_channel_with_a_body(streaming: str, counts: tuple[int, ...]) -> None:
    found, wanted = channel_after(streaming, counts), pulled(counts)
    assert wanted[2][1] > 0.01
    for value, want, tolerance in zip(found, wanted, (1e-14, 1e-14, 1e-13), strict=True):
        np.testing.assert_allclose(value, want, atol=tolerance)


def test_nothing_flows_inside_of_a_body() -> None:
    flow = channel("pull")
    flow.initialise(1.0, (0.0, 0.05))
    flow.step(3)
    solid = ~flow.fluid
    assert 25 < np.count_nonzero(solid) < 40
    assert not flow.velocity()[solid].any()
    assert np.all(flow.density()[solid] == 1.0)
    assert flow.velocity()[~solid].any(axis=-1).all()


@pytest.mark.parametrize(
    ("lattice", "streaming"), rest_is_long([(D3Q19, "in-place"), (D3Q19, "pull"), (D3Q27, "in-place")], keep=1)
)
def test_closed_box_keeps_its_mass(lattice: Any, streaming: str) -> None:
    sides = {name: Wall() for name in ("xmin", "xmax", "ymin", "ymax", "zmin")}
    sides["zmax"] = Wall(velocity=(0, 0.1, 0.05))
    flow = box((8, 9, 10), boundaries=sides, bodies=[Body("ball", Sphere((4, 4, 4), 2.1))], lattice=lattice,
               streaming=streaming)  # fmt: skip
    flow.initialise()
    mass = flow.mass()
    assert mass == np.count_nonzero(flow.fluid)
    flow.step(60)
    assert flow.mass() == pytest.approx(mass, rel=1e-13)
    assert flow.kinetic_energy() > 1e-3
    flow.check_finite()


@pytest.mark.parametrize("streaming", rest_is_long(("in-place", "pull", "push", "three-phase"), keep=1))
def test_a_field_of_equal_forces_is_a_uniform_force(streaming: str) -> None:
    found = []
    for field in (False, True):
        walls = {"ymin": Wall(measure=True), "ymax": Wall()}
        flow = box((10, 6), streaming=streaming, force=(0.0, 1e-4), field=field, boundaries=walls)
        flow.initialise(1.0, (0.0, 0.01))
        np.testing.assert_allclose(flow.velocity()[..., 1], 0.01, rtol=1e-13)
        flow.step(500)
        found.append((flow.velocity(), flow.force_on("ymin")))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-15)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-15)


def test_steady_channel_carries_its_force_on_the_walls() -> None:
    walls = {side: Wall(measure=True) for side in ("ymin", "ymax")}
    flow = box((10, 3), viscosity=0.3, force=(0.0, 1e-4), boundaries=walls)
    flow.initialise()
    flow.step(2500)
    total = flow.force_on("ymin") + flow.force_on("ymax")
    np.testing.assert_allclose(total, (0.0, 30e-4), atol=1e-9)
    y = np.arange(10) + 0.5
    np.testing.assert_allclose(flow.velocity()[:, 1, 1], 1e-4 / 0.6 * y * (10 - y), rtol=1e-6)


def test_the_force_can_be_changed() -> None:
    flow = box((4, 4), force=(0.0, 0.0))
    flow.initialise()
    flow.step(2)
    flow.set_force((1e-3, 0.0))
    flow.step(3)
    np.testing.assert_allclose(flow.velocity()[..., 0], 2.5e-3, rtol=1e-10)  # half of the last one is in the velocity
    with pytest.raises(SolverError, match="make the flow with force="):
        box((4, 4)).set_force((1.0, 0.0))


@pytest.mark.parametrize(
    ("streaming", "mode", "steps"),
    rest_is_long([("pull", "local", 40), ("in-place", "field", 41), ("push", "local", 41)], keep=1),
)
def test_immersed_disk(streaming: str, mode: str, steps: int) -> None:
    sides = {"xmin": Velocity((0.0, 0.04)), "xmax": Outflow(), "ymin": Slip(), "ymax": Slip()}
    flow = box((24, 32), boundaries=sides, streaming=streaming, field=mode == "field")
    flow.immerse(immersed([ImmersedBody("disk", circle((11.5, 12.0), 4.0))], mode=mode))
    flow.initialise(1.0, (0.0, 0.04))
    flow.step(steps)
    drag = flow.force_on("disk")
    assert drag[1] > 0.02
    assert abs(drag[0]) < 1e-10 * drag[1]
    with pytest.raises(SolverError, match="takes one immersed boundary"):
        flow.immerse(immersed([ImmersedBody("other", circle((11.5, 12.0), 4.0))], mode=mode))


def test_a_flow_can_be_started_anew() -> None:
    flow, other = channel("pull"), channel("pull")
    flow.initialise(1.0, (0.0, 0.05))
    flow.step(5)
    for each in (flow, other):
        each.initialise(1.0, (0.0, 0.02))
        each.step(6)
    np.testing.assert_array_equal(flow.velocity(), other.velocity())
    np.testing.assert_array_equal(flow.force_on("disk"), other.force_on("disk"))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"boundaries": {"xmin": Wall()}}, "side 'xmax' has no condition"),
        ({"boundaries": {"front": Wall()}}, "'front' is no side of the box"),
        ({"force": (1.0,)}, "2 finite components"),
        ({"viscosity": float("nan")}, "viscosity must be positive"),
        ({"bodies": [Body("dot", Circle((4.5, 4.5), 0.4))]}, "body 'dot' has no cell"),
        ({"bodies": [Body("big", Circle((4.0, 4.0), 20.0))]}, "leave no fluid"),
        ({"bodies": [Body("a", Circle((4.0, 4.0), 2.0)), Body("a", Circle((1.0, 1.0), 1.0))]}, "more than one"),
    ],
)
def test_mistakes(options: dict[str, Any], text: str) -> None:
    with pytest.raises(SolverError, match=text):
        box((8, 8), **options)


def test_forces_that_nobody_measures() -> None:
    flow = channel("pull")
    with pytest.raises(SolverError, match=r"'disc'; did you mean 'disk'\?"):
        flow.force_on("disc")


def test_starts_and_counts_that_make_no_sense() -> None:
    flow = box((4, 4))
    for density, velocity, text in ((-1.0, 0.0, "positive"), (np.nan, 0.0, "positive"), (1.0, np.inf, "velocity")):
        with pytest.raises(SolverError, match=text):
            flow.initialise(density, velocity)
    flow.initialise()
    for count, text in ((-3, "not be negative"), (2.5, "must be whole")):
        with pytest.raises(SolverError, match=text):
            flow.step(count)  # type: ignore[arg-type]
    flow.step(np.int64(2))
    flow.step(0)
    assert flow.steps == 2


@pytest.mark.parametrize(
    ("streaming", "pipeline"),
    [("pull", ""), ("push", ""), ("three-phase", ""), ("in-place", ""), ("pull", "device"), ("push", "host")],
)
def test_a_changed_force_is_that_of_a_flow_made_with_it(streaming: str, pipeline: str) -> None:
    """Also around immersed bodies; no chain is made anew."""
    found = []
    for first in ((0.0, 0.0), (0.0, 1e-3)):
        walls = {"ymin": Wall(measure=True), "ymax": Wall()}
        flow = box((10, 12), force=first, boundaries=walls, streaming=streaming)
        if pipeline:
            flow.immerse(immersed([ImmersedBody("disk", circle((5.0, 6.0), 2.5))], pipeline=pipeline))
        flow.initialise()
        if not any(first):
            flow.set_force((0.0, 1e-3))
            flow.initialise()
        flow.step(4)
        made = flow.chain
        flow.set_force((1e-4, 2e-3))
        flow.step(6)
        assert flow.chain is made
        found.append((flow.velocity(), flow.density(), flow.force_on("ymin")))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
