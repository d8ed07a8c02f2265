"""The lattice Boltzmann solver as a whole: schemes of streaming agree, conditions, bodies, forces, mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.lbm.boundaries import Body, Outflow, Pressure, Slip, Velocity, Wall
from fluxloom.lbm.collisions import TRT
from fluxloom.lbm.immersed import ImmersedBody, ImmersedBoundary, circle
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27
from fluxloom.lbm.shapes import Circle, Sphere
from fluxloom.solvers.lattice import LatticeBoltzmann
from tests.conformance.harness import rest_is_long

SCHEMES = ("pull", "push", "in-place", "three-phase")


def box(shape: tuple[int, ...], **options: Any) -> LatticeBoltzmann:
    chosen = {"viscosity": 0.05, "lattice": D2Q9, "dtype": "float64", "collision": TRT()} | options
    return LatticeBoltzmann(fl.Context("cpu", threads=1, tuning=False), shape, **chosen)


def channel(streaming: str, **options: Any) -> LatticeBoltzmann:
    sides = {"xmin": Velocity((0.0, 0.05)), "xmax": Pressure(1.0), "ymin": Wall(), "ymax": Slip()}
    bodies = [Body("disk", Circle((7.0, 9.0), 3.2), Wall(interpolated=True, measure=True))]
    return box((16, 30), boundaries=sides, bodies=bodies, streaming=streaming, **options)


def test_schemes_agree_in_a_channel_with_a_body() -> None:
    found = []
    for streaming in SCHEMES:
        flow = channel(streaming)
        flow.initialise(1.0, (0.0, 0.05))
        for count in (7, 12, 4):  # odd and even starts
            flow.step(count)
        assert flow.steps == 23
        found.append((flow.velocity(), flow.density(), flow.force_on("disk")))
    assert found[0][2][1] > 0.01
    for velocity, density, force in found[1:]:
        np.testing.assert_allclose(velocity, found[0][0], atol=1e-14)
        np.testing.assert_allclose(density, found[0][1], atol=1e-14)
        np.testing.assert_allclose(force, found[0][2], atol=1e-13)


def test_nothing_flows_inside_of_a_body() -> None:
    flow = channel("pull")
    flow.initialise(1.0, (0.0, 0.05))
    flow.step(3)
    solid = ~flow.fluid
    assert 25 < np.count_nonzero(solid) < 40
    assert not flow.velocity()[solid].any()
    assert np.all(flow.density()[solid] == 1.0)
    assert flow.velocity()[~solid].any(axis=-1).all()


@pytest.mark.parametrize(("lattice", "streaming"), [(D3Q19, "pull"), (D3Q27, "in-place")])
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
        flow.step(501)
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
    ("streaming", "mode"), rest_is_long([("pull", "local"), ("in-place", "field"), ("push", "local")], keep=1)
)
def test_immersed_disk(streaming: str, mode: str) -> None:
    sides = {"xmin": Velocity((0.0, 0.04)), "xmax": Outflow(), "ymin": Slip(), "ymax": Slip()}
    flow = box((24, 32), boundaries=sides, streaming=streaming, field=mode == "field")
    flow.immerse(ImmersedBoundary([ImmersedBody("disk", circle((11.5, 12.0), 4.0))], mode=mode))
    flow.initialise(1.0, (0.0, 0.04))
    flow.step(41)
    drag = flow.force_on("disk")
    assert drag[1] > 0.02
    assert abs(drag[0]) < 1e-10 * drag[1]
    with pytest.raises(SolverError, match="takes one immersed boundary"):
        flow.immerse(ImmersedBoundary([ImmersedBody("other", circle((11.5, 12.0), 4.0))], mode=mode))


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
        ({"streaming": "pul"}, "did you mean 'pull'"),
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
    with pytest.raises(SolverError, match=r"on 'disc'; did you mean 'disk'\?"):
        flow.force_on("disc")


def test_immersed_boundaries_want_one_rank() -> None:
    def run(comm: Any) -> str:
        ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        try:
            flow = LatticeBoltzmann(ctx, (24, 24), viscosity=0.1, lattice=D2Q9)
            flow.immerse(ImmersedBoundary([ImmersedBody("disk", circle((11.5, 12.0), 4.0))]))
        except SolverError as error:
            return str(error)
        return ""

    assert all("run on one rank" in text for text in run_threads(2, run))


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
