"""Probes: what is linear is exact, blocks, and what signals tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import CheckpointError, SolverError
from fluxloom.dsl.checkpoint.checkpoint import Checkpoints
from fluxloom.fv.flow_samples import locate
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow
from fluxloom.fv.incompressible.scalar_boundary import Adiabatic, FixedValue
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.monitors.running_means import RunningMeans
from fluxloom.solvers.flow_signals import Oscillation, Signal
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.probes import Probes, ProbeSeries
from fluxloom.solvers.incompressible.scalar import Scalar

POINTS = {"middle": (0.52, 0.47), "wall": (0.3, 0.001), "corner": (1.0, 1.0)}


@pytest.fixture(scope="module")
def ctx() -> fl.Context:
    return fl.Context("cpu", tuning=False, threads=1)


def box(ctx: fl.Context) -> Incompressible:
    volumes = control_volumes(box2d(6, 5))
    sides: Any = dict.fromkeys(volumes.patches, NoSlip())
    return Incompressible(ctx, volumes, 0.1, sides, scalars=[Scalar("T", 0.1, dict.fromkeys(sides, Adiabatic()))])


def test_what_is_linear_is_exact(ctx: fl.Context) -> None:
    """Up to walls and into corners, the pressure too, whose values at walls are those of cells."""
    flow = box(ctx)
    x = flow.volumes.centres
    flow.u.write(np.stack([1 + 2 * x[:, 0] - x[:, 1], 3 * x[:, 1]], axis=1))
    flow.phi.write((4 + x[:, 0] - 5 * x[:, 1])[: flow.volumes.cells])
    flow.scalars["T"].theta.write((x[:, 0] * 2 + x[:, 1])[:, None])
    probes = Probes(flow, POINTS)
    probes.sample()
    series = probes.series()
    for k, (a, b) in enumerate(POINTS.values()):
        assert np.allclose(series.velocity[0, k], [1 + 2 * a - b, 3 * b], atol=1e-12)
        assert series.pressure[0, k] == pytest.approx(4 + a - 5 * b, abs=1e-12)
        assert series.scalars["T"][0, k] == pytest.approx(2 * a + b, abs=1e-12)


@pytest.mark.parametrize("kind", ["triangle", "tetra"])
def test_what_is_linear_is_exact_on_oblique_meshes(ctx: fl.Context, kind: str) -> None:
    """In the corner of walls too, where a cell has too few neighbours for a gradient of the pressure."""
    mesh = box2d(5, 4, kind="triangle", perturb=0.3, seed=2) if kind == "triangle" else box3d(
        3, 3, 3, kind="tetra", perturb=0.2, seed=2)  # fmt: skip
    cv = control_volumes(mesh)
    sides: Any = dict.fromkeys(cv.patches, NoSlip())
    flow = Incompressible(ctx, cv, 0.1, sides, scalars=[Scalar("T", 0.1, dict.fromkeys(sides, FixedValue(0.0)))])
    slopes = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, 1.0], [1.0, 2.0, 3.0], [1.0, -5.0, 2.0], [2.0, 1.0, -1.0]])
    d, slopes = cv.dimension, slopes[:, : cv.dimension]
    flow.u.write(1.0 + cv.centres @ slopes[:d].T)
    flow.phi.write((4.0 + cv.centres @ slopes[3])[: cv.cells])
    flow.scalars["T"].theta.write((cv.centres @ slopes[4])[:, None])
    points = {"middle": (0.52, 0.47, 0.55), "wall": (0.3, 0.001, 0.4), "corner": (0.999,) * 3, "low": (0.0,) * 3}
    probes = Probes(flow, {name: point[:d] for name, point in points.items()})
    probes.sample()
    series = probes.series()
    for k, point in enumerate(points.values()):
        x = np.array(point[:d])
        assert series.velocity[0, k] == pytest.approx(1.0 + slopes[:d] @ x, abs=1e-11)
        assert series.pressure[0, k] == pytest.approx(4.0 + slopes[3] @ x, abs=1e-11)
        assert series.scalars["T"][0, k] == pytest.approx(slopes[4] @ x, abs=1e-11)


def test_blocks_do_not_matter(ctx: fl.Context) -> None:
    flow = box(ctx)
    flow.initialise(lambda x: np.stack([np.sin(3 * x[:, 1]), np.cos(2 * x[:, 0])], axis=1))
    centre = {"cell": tuple(flow.volumes.centres[8].tolist())}
    small, large = Probes(flow, centre, capacity=3), Probes(flow, centre, capacity=50)
    wanted = []
    for _ in range(7):
        flow.step(0.01)
        small.sample()
        large.sample()
        wanted.append([*flow.velocity()[8], flow.pressure()[8]])
        assert np.allclose(small.series().velocity[-1, 0], wanted[-1][:2])
    mine, other = small.series(), large.series()
    assert mine.time == pytest.approx(0.01 * np.arange(1, 8))
    assert np.array_equal(mine.velocity, other.velocity)
    assert np.array_equal(mine.pressure, other.pressure)
    assert np.allclose(np.concatenate([mine.velocity[:, 0], mine.pressure], axis=1), wanted, atol=1e-13)
    assert np.array_equal(mine.signal("cell", "v").values, mine.velocity[:, 0, 1])
    small.reset()
    with pytest.raises(SolverError, match="no sample yet"):
        small.series()


def test_samples_are_part_of_checkpoints(ctx: fl.Context, tmp_path: Path) -> None:
    """A run that goes on has those of before, in blocks that grew; nobody sees them while it catches up."""

    def march(steps: int, path: Path) -> tuple[ProbeSeries, RunningMeans, int]:
        sides: Any = dict.fromkeys(("xmin", "xmax", "ymin", "ymax"), NoSlip())
        whole = fl.Incompressible(
            box2d(6, 5), ctx, viscosity=0.1, boundaries=sides,
            scalars=[Scalar("T", 0.1, dict.fromkeys(sides, Adiabatic()))],
            start=lambda x: np.stack([np.sin(3 * x[:, 1]), np.cos(2 * x[:, 0])], axis=1),
        )  # fmt: skip
        flow, statistics = whole.solver, RunningMeans(whole.averaged())
        probes, refused = Probes(flow, POINTS, capacity=2), 0
        saver = Checkpoints(path, every_calls=1, place="marked")
        with saver.watch(ctx):
            for n in range(steps):
                if n % 5 == 4:
                    saver.mark()
                flow.step(0.01)
                statistics.sample(0.01)
                probes.sample()
                if n == 3 and saver.replaying:
                    with pytest.raises(CheckpointError, match="catches up"):
                        probes.series()
                    refused += 1
        late, whole = probes.series(4), probes.series()
        assert np.array_equal(late.velocity, whole.velocity[4:])
        assert np.array_equal(late.time, whole.time[4:])
        with pytest.raises(SolverError, match=f"no sample yet from number {steps} on"):
            probes.series(steps)
        return whole, statistics, refused

    wanted, means, _ = march(19, tmp_path / "whole.h5")
    march(12, tmp_path / "run.h5")
    found, again, refused = march(19, tmp_path / "run.h5")
    assert refused == 1
    assert (again.samples, again.weight) == (19, means.weight)
    for one, other in ((found.velocity, wanted.velocity), (found.pressure, wanted.pressure),
                       (found.scalars["T"], wanted.scalars["T"]), (again.rms(), means.rms()),
                       (again.velocity(), means.velocity())):  # fmt: skip
        assert np.array_equal(one, other)


@pytest.mark.parametrize("kind", ["quad", "triangle"])
def test_places(kind: str) -> None:
    """Cells of stretched meshes that a point is in; centres are in their own cells."""
    positions = np.array([0.0, 0.01, 0.03, 0.1, 0.4, 1.0])
    volumes = control_volumes(box2d(4, 5, kind=kind, axes=(None, positions)))
    inside = volumes.centres[: volumes.cells]
    assert np.array_equal(locate(volumes, inside)[0], np.arange(volumes.cells))
    if kind == "quad":
        cells, out = locate(volumes, np.array([[0.26, 0.02], [0.74, 0.009], [0.01, 0.99]]))
        assert np.allclose(inside[cells], [[0.375, 0.02], [0.625, 0.005], [0.125, 0.7]])
        assert (out <= 1.0 + 1e-9).all()
    off = 1e-6 if kind == "quad" else 0.1
    beyond = np.array([[-off, 0.5], [0.5, -off], [0.5, 1.3], [7.0, 0.5]])
    assert (locate(volumes, beyond)[0] == -1).all()
    if kind == "triangle":
        mesh = box2d(4, 5, kind=kind, axes=(None, positions))
        corners = mesh.points[mesh.cell_nodes().table]
        share = np.random.default_rng(5).dirichlet((1.0, 1.0, 1.0), len(corners))
        assert np.array_equal(locate(volumes, np.einsum("ck,ckd->cd", share, corners))[0], np.arange(volumes.cells))


def test_signals() -> None:
    time: np.ndarray = np.arange(1000) * 0.02
    values = 3 + 0.7 * np.sin(2 * np.pi * 1.234 * time) + 0.2 * np.sin(2 * np.pi * 7.0 * time)
    signal = Signal(time, values)
    found = signal.oscillation()
    assert found is not None
    assert found.frequency == pytest.approx(1.234, rel=1e-3)
    assert found.amplitude == pytest.approx(0.7, rel=1e-4)
    assert abs(found.frequency - 1.234) < found.uncertainty < 0.02
    assert found.periods == 23
    assert found.strouhal(0.5, 2.0) == pytest.approx((found.frequency * 0.25, found.uncertainty * 0.25))
    spectrum = signal.spectrum(500)
    width = spectrum.frequency[1]
    assert spectrum.density.sum() * width == pytest.approx(0.5 * (0.7**2 + 0.2**2), rel=0.02)
    peak = spectrum.frequency > 4
    assert spectrum.frequency[peak][spectrum.density[peak].argmax()] == pytest.approx(7.0, abs=width)
    assert signal.spectrum().peak == pytest.approx(1.234, abs=0.05)
    assert signal.after(10.0).time[0] == 10.0
    assert signal.late().time[0] == 10.0
    uneven = Signal(time**1.1, np.sin(2 * np.pi * time**1.1))
    with pytest.raises(SolverError, match="the steps are not equal"):
        uneven.spectrum()
    for one in (uneven, uneven.even()):
        found = one.oscillation()
        assert found is not None
        assert found.frequency == pytest.approx(1.0, rel=2e-3)
    assert uneven.even(0.1).time[1] == pytest.approx(0.1)


def test_oscillations() -> None:
    """Noise does not count; the frequency is within its uncertainty in 95 of 100 signals whose periods vary."""
    random, time, met = np.random.default_rng(7), np.linspace(0.0, 60.0, 3001), 0
    for _ in range(100):
        phase = np.cumsum(2 * np.pi * 0.4 * np.gradient(time) + 0.05 * random.normal(size=time.size))
        found = Signal(time, 0.3 + 0.5 * np.sin(phase) + 0.03 * random.normal(size=time.size)).oscillation()
        assert found is not None
        met += abs(found.frequency - 0.4) < found.uncertainty
        assert found.periods in range(17, 31)
    assert 90 <= met <= 100
    noise = 0.05 * np.sin(97.0 * time)
    found = Signal(time, np.where(time < 25.0, 5.0, 0.3) + 0.5 * np.sin(2 * np.pi * 0.4 * time) + noise).late()
    wave = found.oscillation()
    assert wave is not None
    assert wave.frequency == pytest.approx(0.4, rel=2e-3)
    for still in (np.exp(-time), np.ones_like(time), np.sin(0.2 * time)):
        assert Signal(time, still).oscillation() is None


def test_signals_that_change() -> None:
    """One that still grows says so, with an uncertainty that has the change of its frequency; an even one does not."""
    time = np.linspace(0.0, 10.0, 501)
    even = Signal(time, 2.0 + 0.3 * np.sin(2 * np.pi * 1.3 * time)).oscillation()
    assert even is not None
    assert even.growth == 1.0
    assert even.amplitude == pytest.approx(0.3, rel=1e-3)
    assert even.uncertainty < 1e-5
    grows = Signal(time, np.exp(0.1 * time) * np.sin(2 * np.pi * 1.3 * time)).oscillation()
    assert grows is not None
    assert grows.growth == grows.last / grows.first > 1.3
    settles = Signal(time, (1.0 + np.exp(-0.4 * time)) * np.sin(2 * np.pi * 1.3 * time)).oscillation()
    assert settles is not None
    assert settles.growth < 0.8
    size = np.tanh(0.25 * time)  # as a wake that begins to shed: the frequency rises with the amplitude
    phase = 2 * np.pi * np.cumsum(1.0 + 0.3 * size**2) * time[1]
    shed = Signal(time, size * np.sin(phase)).oscillation()
    assert shed is not None
    assert shed.growth > 1.1
    assert abs(shed.frequency - 1.3) < shed.uncertainty
    chirp = Signal(time, np.sin(2 * np.pi * 1.3 * time * (1.0 + 0.02 * time))).oscillation()
    assert chirp is not None
    assert chirp.growth == 1.0
    assert chirp.uncertainty > 0.1 * chirp.frequency


def test_rounding_noise_and_few_values() -> None:
    """What is rounding of a magnitude, noise, or shorter than three periods is no oscillation."""
    random, time = np.random.default_rng(3), np.linspace(0.0, 10.0, 501)
    wave = np.sin(2 * np.pi * 1.3 * time)
    for noise in (1e-12 * wave, 1e-16 * random.integers(-3, 4, 501)):
        still = np.asarray(1.0 + noise, dtype=np.float64)
        assert Signal(time, still).oscillation() is None
    assert Signal(time, 1e-12 * wave).oscillation(1.0) is None
    assert Signal(time, 1e-12 * wave).oscillation(1e-9) is not None
    assert not any(Signal(time, random.normal(size=501)).oscillation() for _ in range(50))
    two = Signal(time, wave + 0.5 * np.sin(2 * np.pi * 3.1 * time)).oscillation()
    assert two is not None
    assert two.frequency == pytest.approx(1.3, rel=1e-3)
    assert two.amplitude == pytest.approx(1.0, rel=0.01)
    for count in (3, 7, 130):
        assert Signal(time[:count], wave[:count]).oscillation() is None


def test_wrong_signals() -> None:
    time = np.arange(20.0)
    for make, message in (
        (lambda: Signal(time, time[1:]), "as many times as values"),
        (lambda: Signal(-time, time), "times have to ascend"),
        (lambda: Signal(time, np.full(20, np.inf)).oscillation(), "the values are not finite"),
        (lambda: Signal(time, np.full(20, np.nan)).spectrum(), "the values are not finite"),
        (lambda: Signal(time, time).spectrum(21), "segments of 8 to 20 values"),
        (lambda: Signal(time, time).even(-1.0), "step: a positive number"),
        (lambda: Signal(time[:1], time[:1]).even(), "at least 2"),
        (lambda: Oscillation(1.0, 1.0, 0.1, 4).strouhal(1.0, 0.0), "a length and a speed above 0"),
    ):
        with pytest.raises(SolverError, match=message):
            make()


def test_wrong_input(ctx: fl.Context) -> None:
    flow = box(ctx)
    for points, message in (
        ({"a": (0.5, 0.5), "b": (0.5, 1.5)}, r"probe 'b' at \(0.5, 1.5\) is not in the mesh"),
        ({"a": (0.5,)}, "probe 'a': 2 finite coordinates"),
        ({"a": (0.5, np.nan)}, "probe 'a': 2 finite coordinates"),
        ({}, "at least one point"),
    ):
        with pytest.raises(SolverError, match=message):
            Probes(flow, points)
    with pytest.raises(SolverError, match="capacity: a number of at least 1"):
        Probes(flow, POINTS, capacity=0)
    probes = Probes(flow, POINTS)
    probes.sample()
    with pytest.raises(SolverError, match=r"no probe 'midle'.*did you mean 'middle'"):
        probes.series().signal("midle", "u")
    with pytest.raises(SolverError, match=r"no 'w'.*it has u, v, p, T"):
        probes.series().signal("middle", "w")


def test_a_point_in_a_stream(ctx: fl.Context) -> None:
    """Between the inflow and the first cell: linear between what comes in and what is there."""
    volumes = control_volumes(box2d(5, 4))
    sides = {"xmin": Inflow((1.0, 0.0)), "xmax": Outflow(), "ymin": NoSlip(), "ymax": NoSlip()}
    flow = Incompressible(ctx, volumes, 0.1, sides)
    flow.initialise((1.0, 0.0))
    probes = Probes(flow, {"in": (0.0, 0.375), "out": (1.0, 0.375)})
    for _ in range(5):
        flow.step(0.01)
    probes.sample()
    found = probes.series()
    assert 0.9 < found.velocity[0, 0, 0] < 1.2
    assert found.pressure[0, 1] == pytest.approx(0.0, abs=0.1 * found.pressure[0, 0])
