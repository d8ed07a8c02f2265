"""The shallow-water solver: balance, conservation, boundaries, time, devices, errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import Divergence, MeshError, SolverError
from fluxloom.fv.shallow.boundary import Boundary, Incident, Level, Outflow, Wall
from fluxloom.fv.shallow.boundary_states import WaterState
from fluxloom.fv.shallow.scheme import ShallowScheme
from fluxloom.mesh import Mesh, MeshData, bind, box2d
from fluxloom.mesh.data.mesh import PatchFaces
from fluxloom.mesh.geometry.dual import dual
from fluxloom.solvers.shallow.flow import ShallowWater
from fluxloom.solvers.shallow.probes import WaterProbes
from fluxloom.values.tables import TimeSeries
from fluxloom_lab.exact.shallow_exact import DamBreak, ParabolicBasin, solitary_runup

MAPS = ("cell_nodes", "face_cells", "face_nodes", "boundary_cell", "boundary_nodes")


def mesh(n: int = 12, device: str = "cpu", *, kind: str = "triangle", **options: Any) -> Mesh:
    return bind(box2d(n, n, kind=kind, perturb=0.2, seed=3, **options), fl.Context(device, threads=1, tuning=False))


def bed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -0.6 + 0.9 * np.exp(-((x - 0.5) ** 2 + (y - 0.4) ** 2) / 0.03) + 0.2 * np.sin(5 * x) * np.cos(4 * y)


def hump(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 0.1 * np.exp(-((x - 0.2) ** 2 + (y - 0.3) ** 2) / 0.02)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("kind", ["triangle", pytest.param("quad", marks=pytest.mark.long)])
def test_water_at_rest(order: int, kind: str) -> None:
    """Round an island that reaches out of the water, walls and open sides: nothing moves."""
    sides: dict[str, Boundary] = {
        "xmin": Incident(), "xmax": Level(0.0), "ymin": Outflow(),
    }  # fmt: skip
    water = ShallowWater(mesh(kind=kind), bed, scheme=ShallowScheme(order=order), boundaries=sides)
    dry = water.depth() == 0.0
    assert 3 < dry.sum() < 60
    water.advance_to(0.5)
    assert water.steps > 50
    assert np.abs(water.u.read()[:, 1:]).max() < 2e-14
    assert np.abs(water.surface()[~dry]).max() < 1e-13
    assert (water.depth()[dry] == 0.0).all()


@dataclass(frozen=True)
class HalfMirrored(WaterState):
    """A porous wall: a part of the velocity is turned round."""

    part: float

    @fl.func
    def __call__(self, h, z, un, level, still, g):
        return h, (1.0 - 2.0 * self.part) * un


@dataclass(frozen=True)
class Porous(Boundary):
    """A boundary of one's own."""

    part: float

    @property
    def formula(self) -> WaterState:
        return HalfMirrored(self.part)


@pytest.mark.parametrize("order", [1, 2])
def test_a_boundary_of_ones_own(order: int) -> None:
    """It is an outflow where nothing is turned round, a wall where all is, and between them another; devices agree."""

    def after(side: Boundary, device: str = "cpu") -> np.ndarray:
        scheme = ShallowScheme(order=order)
        water = ShallowWater(mesh(6, device), -0.5, hump, scheme=scheme, boundaries={"xmin": side})
        water.advance_to(0.3)
        return water.u.read()

    open_side, porous = after(Outflow()), after(Porous(0.5))
    np.testing.assert_array_equal(after(Porous(0.0)), open_side)
    np.testing.assert_allclose(after(Porous(0.5), "reference"), porous, rtol=1e-10, atol=1e-13)
    assert np.abs(porous - open_side).max() > 1e-3
    if order == 1:
        np.testing.assert_array_equal(after(Porous(1.0)), after(Wall()))
    with pytest.raises(SolverError, match=r"boundaries: xmin: Wall\(\), Outflow\(\).* not 'wall'"):
        ShallowWater(mesh(6), -0.5, boundaries={"xmin": "wall"})  # type: ignore[dict-item]


@pytest.mark.parametrize("order", [1, 2])
def test_mass_is_kept(order: int) -> None:
    """Waves over an island, its shore moving: the volume changes by round-off, no depth is negative."""
    water = ShallowWater(mesh(), bed, hump, scheme=ShallowScheme(order=order))
    water.advance_to(0.7)
    found = water.survey()
    assert found.speed > 0.05
    assert abs(found.defect) < 1e-14
    assert water.depth().min() >= 0.0


def scattered(kind: str, seed: int, **options: Any) -> ShallowWater:
    """Return pools and sheets of water at random over a random bed with dry ground, on uneven, skewed cells."""
    rng = np.random.default_rng(seed)
    data = box2d(10, 10, kind=kind, perturb=0.3 if kind == "triangle" else 0.2, seed=seed)
    skewed = data.with_points(data.points ** rng.choice([1.0, 1.5]) @ np.array([[1.0, 0.0], [1.7, 0.3]]))
    n = data.n_cells
    ground = rng.choice([0.0, 1.0]) * rng.uniform(size=n)
    depth = rng.uniform(size=n) ** rng.choice([1, 6]) * (rng.uniform(size=n) < 0.6)
    speed = rng.choice([1.0, 10.0]) * (rng.normal(size=(2, n)) + rng.normal(size=(2, 1)))
    context = fl.Context("cpu", threads=1, tuning=False)
    return ShallowWater(bind(skewed, context), ground, ground + depth, tuple(speed), **options)


@pytest.mark.parametrize("kind", ["triangle", "quad"])
@pytest.mark.parametrize(("order", "cfl", "manning"), [(1, 0.5, 0.0), (1, 1.0, 0.03), (2, 0.5, 0.03), (2, 1.0, 0.0)])
def test_no_cell_gives_more_than_it_has(kind: str, order: int, cfl: float, manning: float) -> None:
    """Sheets faster than their waves onto dry ground: no depth below zero, and no water made, for any step."""
    sides: dict[str, Boundary] = {"xmin": Outflow(), "ymax": Level(0.3)}
    for seed in (0, 3, 4, 9, 22):
        scheme = ShallowScheme(order=order, cfl=cfl, manning=manning)
        water = scattered(kind, seed, scheme=scheme, boundaries=sides if seed == 4 else None)
        for _ in range(4):
            water.advance_to(water.time + 8.0 * water.next_step())
            assert water.depth().min() >= 0.0
            assert abs(water.survey().defect) < 1e-13


@pytest.mark.parametrize("order", [1, 2])
def test_a_splinter_that_falls_dry(order: int) -> None:
    """A dam breaks over a cell of a thousandth of the others' size (water was made, half as much again, order 1)."""
    data = box2d(10, 10, kind="triangle", perturb=0.35, seed=1)
    water = ShallowWater(
        bind(data, fl.Context("cpu", threads=1, tuning=False)), 0.0, lambda x, _: np.where(x < 0.3, 0.4, 0.0),
        scheme=ShallowScheme(order=order),
    )  # fmt: skip
    assert water.mesh.volumes.read().min() < 1e-5
    water.advance_to(0.03)
    assert water.depth().min() >= 0.0
    assert abs(water.survey().defect) < 1e-13
    assert np.nanmax(water.highest_surface()) < 0.42


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["triangle", pytest.param("quad", marks=pytest.mark.long)])
def test_two_lakes_at_rest_on_rough_ground(kind: str, dtype: str) -> None:
    """At different heights, with dry cells between and within, a thousand steps."""
    data = box2d(10, 10, (100.0, 100.0), kind=kind, perturb=0.2, seed=1)
    plane = bind(data, fl.Context("cpu", threads=1, tuning=False))
    x, rng = plane.centroids.read()[:, 0], np.random.default_rng(2)
    ground = np.where(np.abs(x - 50.0) < 7.0, 3.0, rng.uniform(-1.0, 1.0, data.n_cells))
    level = np.where(x < 50.0, 0.0, 0.7)
    water = ShallowWater(plane, ground, level, dtype=dtype)
    dry = water.depth() == 0.0
    water.advance_to(1000.0 * water.next_step())
    rounding = float(np.finfo(dtype).eps)
    assert 10 < dry.sum() < 150
    assert (water.depth()[dry] == 0.0).all()
    assert np.abs(water.velocity()).max() < 200.0 * rounding
    assert np.abs(water.surface() - level)[~dry].max() < 10.0 * rounding


def uneven(kind: str) -> MeshData:
    """Return triangles, quads, polygons, or triangles and quads, of uneven shapes; "thin" ones 1 : 1000."""
    thin, kind = kind.startswith("thin"), kind.removeprefix("thin ")
    data = box2d(9, 8, kind="quad" if kind in ("quad", "mixed") else "triangle", perturb=0.3, seed=2)
    if kind == "polygon":
        data = dual(data)
    if kind == "mixed":
        quads = data.cells["quad"]
        cut = quads[::2]
        halves = np.concatenate([cut[:, [0, 1, 2]], cut[:, [0, 2, 3]]])
        data = MeshData(data.points, {"quad": quads[1::2], "triangle": halves}, data.patches)
    return data.with_points(data.points @ np.array([[1.0, 0.0], [0.4, 1e-3 if thin else 1.0]]))


@pytest.mark.parametrize("kind", ["triangle", "quad", "polygon", "mixed", "thin triangle", "thin quad"])
def test_linear_fields(kind: str) -> None:
    """Under a plane surface and a linear velocity depth and momentum change as the equations say, inside."""
    plane = bind(uneven(kind), fl.Context("cpu", threads=1, tuning=False))
    x, span = plane.centroids.read(), np.ptp(plane.centroids.read(), axis=0)
    rise, growth, dt = np.array([0.3, -0.5]) / span, np.array([[0.4, -0.2], [0.7, 0.5]]) / span, 1e-6 * span.min()
    sides: dict[str, Boundary] = dict.fromkeys(plane.data.patches, Outflow())
    inner = np.ones(len(x), dtype=bool)
    for _ in range(2):
        edge = ~inner
        edge[plane.boundary_cell.table.reshape(-1)] = True
        pairs = plane.face_cells.table
        inner = ~edge
        inner[pairs[edge[pairs].any(axis=1)].reshape(-1)] = False
    assert inner.any()
    for a in (growth, np.zeros((2, 2))):
        water = ShallowWater(plane, x @ rise - 2.0, x @ rise, tuple((0.2 + x @ a).T), boundaries=sides,
                             scheme=ShallowScheme(longest=dt))  # fmt: skip
        before = water.u.read()
        water.advance_to(dt)
        rate = (water.u.read() - before) / dt
        assert rate[inner, 0] == pytest.approx(-2.0 * np.trace(a), rel=1e-4, abs=1e-6 * np.abs(rate).max())
        if not a.any():
            wanted = np.broadcast_to(-9.81 * 2.0 * rise, (inner.sum(), 2))
            np.testing.assert_allclose(rate[inner, 1:], wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


def test_open_sides_balance() -> None:
    """What leaves through open sides is counted: the volume changes by as much."""
    sides: dict[str, Boundary] = {"xmin": Outflow(), "xmax": Incident()}
    water = ShallowWater(mesh(), bed, hump, boundaries=sides)
    water.advance_to(1.0)
    found = water.survey()
    assert found.inflow < -1e-4
    assert abs(found.defect) < 1e-13


def test_incident_wave_enters_and_leaves() -> None:
    """A long wave of small height crosses flat water with its height, and is gone after it has passed."""
    flat = box2d(80, 2, (8.0, 0.2), "triangle")
    times = np.linspace(0.0, 4.0, 401)
    pulse = 0.01 * np.sin(0.5 * np.pi * times) ** 2 * (times < 2.0)
    wave = TimeSeries(times=times, numbers=pulse, outside="hold")
    sides: dict[str, Boundary] = {"xmin": Incident(wave), "xmax": Incident()}
    scheme = ShallowScheme(gravity=1.0)
    water = ShallowWater(bind(flat, fl.Context("cpu", threads=1, tuning=False)), -1.0, scheme=scheme, boundaries=sides)
    gauges = WaterProbes(water, {"middle": (4.0, 0.1)})
    for time in np.arange(0.5, 14.01, 0.5):
        water.advance_to(float(time))
        gauges.sample()
    found, values = gauges.records.values()
    series = np.column_stack([found, values[:, 0, 1]])
    assert series[:, 1].max() == pytest.approx(0.01, rel=0.15)
    assert series[np.argmax(series[:, 1]), 0] == pytest.approx(5.0, abs=0.3)
    assert np.abs(water.surface()).max() < 2e-4


def test_what_gives_a_level_over_time() -> None:
    """A formula is taken step by step, a fine series of it by its samples; a table that ends is no wave."""
    times = np.linspace(0.0, 1.0, 2001)
    series = TimeSeries(times=times, numbers=0.1 * np.sin(3.0 * times) ** 2)
    found = []
    for wave in ("0.1 * sin(3 * t)**2", series):
        mesh = bind(box2d(30, 2, (3.0, 0.2), "triangle"), fl.Context("cpu", threads=1, tuning=False))
        water = ShallowWater(mesh, -1.0, boundaries={"xmin": Level(wave), "xmax": Incident()})
        water.advance_to(0.7)
        found.append(water.depth())
    assert np.abs(found[0] - 1.0).max() > 0.02
    assert found[0] == pytest.approx(found[1], abs=2e-4)
    with pytest.raises(SolverError, match=r"a series: it goes from 0 to 1 and has no value at t = 1\.5"):
        water.advance_to(1.5)


def test_levels_in_place_and_time() -> None:
    """Of two halves of a side as of two sides; formulas as functions; what is the same everywhere as one in time."""
    data = box2d(12, 8, (1.5, 1.0), "triangle")
    context = fl.Context("cpu", threads=1, tuning=False)
    rest = dict(data.patches)
    ((kind, left),) = rest.pop("xmin").blocks.items()
    low = data.points[left, 1].mean(axis=1) < 0.5
    parts = {name: PatchFaces({kind: left[chosen]}) for name, chosen in (("low", low), ("high", ~low))}
    halves = bind(MeshData(data.points, data.cells, rest | parts), context)
    given: list[tuple[Mesh, dict[str, Boundary]]] = [
        (halves, {"low": Level(0.05), "high": Level(-0.02)}),
        (bind(data, context), {"xmin": Level("0.05 if y < 0.5 else -0.02")}),
        (bind(data, context), {"xmin": Level("0.1 * sin(3 * t)**2")}),
        (bind(data, context), {"xmin": Level("0.1 * sin(3 * t)**2 + 0 * y * sqrt(0.7 - t)")}),
        (bind(data, context), {"xmin": Level(lambda at, t: 0.1 * np.sin(3 * t) ** 2 + 0.0 * at[:, 1])}),
    ]
    found = []
    for plane, sides in given:
        water = ShallowWater(plane, -1.0, boundaries=sides)
        water.advance_to(0.3)
        water.advance_to(0.7)
        found.append(water.u.read())
        assert water.steps < 190
        assert abs(water.survey().defect) < 1e-14
    np.testing.assert_array_equal(found[1], found[0])
    assert np.abs(found[0][:, 2]).max() > 0.01
    np.testing.assert_allclose(found[3], found[2], atol=1e-5)
    np.testing.assert_allclose(found[4], found[3], atol=1e-12)
    assert np.abs(found[2][:, 0] - 1.0).max() > 0.02
    water = ShallowWater(given[1][0], -1.0, boundaries={"xmin": Level("0.05 / (t < 0.2 or y > 0.2)")})
    with pytest.raises(SolverError, match=r"boundaries.xmin: .* is inf at \(0, 0.0625\), at t = "):
        water.advance_to(0.4)


def test_an_incident_wave_brings_what_a_simple_wave_brings() -> None:
    """The volume is that of ``h u`` with ``u = 2 (sqrt(g h) - sqrt(g d))`` in the limit (Stoker 1957, section 10.4)."""
    gravity, depth, end = 9.81, 5.0, 2.0
    times, surface = np.array([0.0, 0.5, 1.0]), np.array([0.25, 0.75, 1.5])
    middle = (np.arange(20000) + 0.5) * end / 20000
    height = depth + np.interp(middle, times, surface)
    exact = float(np.mean(2.0 * height * (np.sqrt(gravity * height) - np.sqrt(gravity * depth)))) * end
    errors = []
    for cells in (20, 80):
        sides: dict[str, Boundary] = {"xmin": Incident(TimeSeries(times=times, outside="hold", numbers=surface))}
        context = fl.Context("cpu", threads=1, tuning=False)
        scheme = ShallowScheme(cfl=0.9, gravity=gravity)
        water = ShallowWater(bind(box2d(cells, 1, (100.0, 5.0)), context), -depth, scheme=scheme, boundaries=sides)
        water.advance_to(end)
        errors.append(abs(water.survey().inflow / (5.0 * exact) - 1.0))
    assert errors[0] < 0.02
    assert errors[1] < errors[0] / 3.0, errors


@pytest.mark.long
def test_level_rises_to_what_is_given() -> None:
    """A side at a raised level fills the basin up to it."""
    sides: dict[str, Boundary] = {"xmin": Level(0.05)}
    scheme = ShallowScheme(manning=0.2)
    water = ShallowWater(mesh(5), -0.3, scheme=scheme, boundaries=sides)
    water.advance_to(80.0)
    assert water.surface() == pytest.approx(0.05, abs=2e-3)
    assert water.survey().inflow == pytest.approx(0.05, rel=0.03)


def test_level_turns_into_a_wall() -> None:
    sides: dict[str, Boundary] = {"xmin": Level(0.05, until=0.05)}
    water = ShallowWater(mesh(8), -0.3, boundaries=sides)
    water.advance_to(0.2)
    inflow = water.survey().inflow
    assert inflow > 0.0
    water.advance_to(0.4)
    assert water.survey().inflow == inflow


def test_end_is_met_and_pieces_join() -> None:
    """Any stops are met exactly; more of them change the result by no more than their other steps do."""
    one, many = (ShallowWater(mesh(), bed, hump) for _ in range(2))
    one.advance_to(0.3)
    for stop in (0.05, 0.0500001, 0.17, 0.3):
        many.advance_to(stop)
        assert many.time == stop
    many.advance_to(0.3)
    assert many.steps >= one.steps
    assert np.abs(one.surface() - many.surface()).max() < 2e-3
    with pytest.raises(SolverError, match=r"cannot advance to 0.2 s: it is 0.3 s already"):
        many.advance_to(0.2)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("driven", [False, True])
def test_steps_of_a_given_length(dtype: str, driven: bool) -> None:
    """As many as it takes, all alike, up to any times; they are those of a run that chooses none longer."""
    sides: dict[str, Boundary] = {"xmin": Level("0.1 * sin(9 * t)")} if driven else {}
    for stops, dt, steps in (([1.2], 1e-3, 1200), ([0.4, 0.401, 1.2], 1e-3, 1200), ([0.0105, 0.9], 2e-3, 6 + 445)):
        water, other = (
            ShallowWater(mesh(8), bed, hump, scheme=scheme, boundaries=sides, dtype=dtype)
            for scheme in (ShallowScheme(dt=dt), ShallowScheme(longest=dt))
        )
        water.check_step()
        for stop in stops:
            for one in (water, other):
                one.advance_to(stop)
            assert water.time == stop
        assert water.steps == steps
        close = {"float64": 2e-4, "float32": 2e-3}[dtype]
        np.testing.assert_allclose(water.depth(), other.depth(), atol=close)
        assert abs(water.survey().defect) < {"float64": 1e-13, "float32": 1e-4}[dtype]


def test_steps_of_a_given_length_are_of_second_order() -> None:
    """Towards those that are chosen and much shorter."""

    def after(**steps: float) -> np.ndarray:
        plane = bind(box2d(16, 2, (4.0, 0.5)), fl.Context("cpu", threads=1, tuning=False))
        water = ShallowWater(plane, -1.0, lambda x, y: 0.05 * np.cos(np.pi * x / 4.0), scheme=ShallowScheme(
            order=1, cfl=1.0, **steps))  # type: ignore[arg-type]  # fmt: skip
        water.advance_to(0.6)
        return water.depth()

    fine = after(longest=1e-3)
    errors = [np.abs(after(dt=dt) - fine).max() for dt in (0.02, 0.01)]
    assert 1.7 < np.log2(errors[0] / errors[1]) < 2.3


def test_steps_that_are_too_long() -> None:
    """At the start, and where they come to be so."""
    water = ShallowWater(mesh(), -1.0)
    limit = water.next_step()
    for dt, message in ((1.001, "too long"), (0.999, "")):
        water = ShallowWater(mesh(), -1.0, scheme=ShallowScheme(dt=dt * limit))
        if message:
            with pytest.raises(SolverError, match=r"dt: steps of .* s are longer than cfl = 0.5 allows, .*: lower dt"):
                water.check_step()
        else:
            water.check_step()
        water.u.write(1.1 * water.u.read())  # the first step does not know it
        with pytest.raises(Divergence, match=r"time .* s: steps of .* s are longer than cfl = 0.5 allows"):
            water.advance_to(10.0 * dt * limit)
        assert np.isfinite(water.u.read()).all()
    with pytest.raises(SolverError, match="only one of dt and longest"):
        ShallowScheme(dt=0.1, longest=0.2)
    with pytest.raises(SolverError, match="dt must be a number of at least 0"):
        ShallowScheme(dt=-0.1)


def test_fused_and_plain_agree() -> None:
    fused, plain = (ShallowWater(mesh(), bed, hump, fused=choice) for choice in (True, False))
    for water in (fused, plain):
        water.advance_to(0.2)
    assert fused.chain.fused
    text = fused.chain.describe()
    assert "flux_linear+boundary_linear+correct+highest" in text
    assert "flux_linear+boundary_linear+predict" in text
    assert fused.u.read() == pytest.approx(plain.u.read(), abs=1e-13)


@pytest.mark.parametrize("order", [pytest.param(1, marks=pytest.mark.long), 2])
def test_reference_device_agrees(order: int) -> None:
    """The kernels as Python give what the compiled ones do."""
    wave = TimeSeries(times=(0.0, 1.0), numbers=(0.0, 0.1), outside="hold")
    sides: dict[str, Boundary] = {"ymax": Outflow(), "xmin": Incident(wave)}
    found = []
    for device in ("reference", "cpu"):
        scheme = ShallowScheme(order=order, manning=0.03)
        water = ShallowWater(mesh(5, device), bed, hump, scheme=scheme, boundaries=sides)
        water.advance_to(0.08)
        found.append((water.u.read(), water.top.read(), water.steps))
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-14)
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-14)
    assert found[0][2] == found[1][2]


@pytest.mark.long
def test_bitwise_with_global_determinism() -> None:
    """Threads and strategies change no bit."""
    results = set()
    data = box2d(12, 12, kind="triangle", perturb=0.2, seed=3)
    for threads, strategy, fused in ((1, "serial", False), (2, "gather", True), (2, "two_pass", False)):
        schedule = fl.Schedule(strategy=strategy, deterministic="global")
        context = fl.Context("cpu", threads=threads, tuning=False)
        water = ShallowWater(bind(data, context), bed, hump, schedule=schedule, fused=fused)
        water.advance_to(0.1)
        results.add(water.u.read().tobytes())
    assert len(results) == 1


@pytest.mark.long
def test_single_precision() -> None:
    single, double = (ShallowWater(mesh(), bed, hump, dtype=kind) for kind in ("float32", "float64"))
    for water in (single, double):
        for time in (0.11, 0.3):
            water.advance_to(time)
    assert single.u.scalar.size == 4
    assert np.abs(single.surface() - double.surface()).max() < 2e-5
    assert abs(single.survey().defect) < 1e-6


def test_lifted_bed_lifts_the_water() -> None:
    water = ShallowWater(mesh(), -1.0)
    water.displace(hump)
    centre = water.mesh.centroids.read()
    assert water.surface() == pytest.approx(hump(*centre.T), abs=1e-15)
    assert water.depth() == pytest.approx(1.0)
    assert np.nanmax(water.highest_surface()) == pytest.approx(water.surface().max())
    water.advance_to(0.1)
    assert water.survey().speed > 0.01


def test_friction_slows() -> None:
    """Uniform flow with friction: ``dv/dt = -g n^2 v^2 / H^(4/3)`` has a closed solution."""
    n, depth, time = 0.05, 0.5, 2.0
    sides: dict[str, Boundary] = {"xmin": Outflow(), "xmax": Outflow()}
    scheme = ShallowScheme(manning=n, longest=0.01)
    water = ShallowWater(mesh(6), -depth, 0.0, (1.0, 0.0), scheme=scheme, boundaries=sides)
    water.advance_to(time)
    k = 9.81 * n**2 / depth ** (4 / 3)
    assert water.velocity()[:, 0] == pytest.approx(1.0 / (1.0 + k * time), rel=2e-3)


@pytest.mark.parametrize("kind", ["quad", "triangle"])
@pytest.mark.parametrize("cfl", [0.5, 0.05])
@pytest.mark.parametrize("start", [0.0, 1.0, 2.0])
def test_friction_holds_the_slope(kind: str, cfl: float, start: float) -> None:
    """Down a plane bed water comes to ``H^(2/3) S^(1/2) / n`` whatever the step, and stays."""
    n, depth, slope = 0.1, 0.1, 1e-3
    wanted = depth ** (2 / 3) * slope**0.5 / n
    plane = bind(box2d(40, 2, (4000.0, 100.0), kind=kind), fl.Context("cpu", threads=1, tuning=False))
    sides: dict[str, Boundary] = {"xmin": Outflow(), "xmax": Outflow()}
    water = ShallowWater(plane, lambda x, y: -slope * x, lambda x, y: depth - slope * x, (start * wanted, 0.0),
                         scheme=ShallowScheme(manning=n, cfl=cfl), boundaries=sides)  # fmt: skip
    water.advance_to(200.0)
    inside = np.abs(plane.centroids.read()[:, 0] - 2000.0) < 500.0
    assert water.velocity()[inside, 0] == pytest.approx(wanted, rel=1e-7)
    assert np.abs(water.velocity()[inside, 1]).max() < 1e-9


@pytest.mark.parametrize(("velocity", "wanted"), [((0.3, 0.0), 0.3), ((0.0, 0.0), 0.0), ((0.3, -0.2), 2.3)])
def test_water_that_comes_in_through_an_outflow_is_found(velocity: tuple[float, float], wanted: float) -> None:
    sea = bind(box2d(20, 4, (10.0, 1.0)), fl.Context("cpu", threads=1, tuning=False))
    sides: dict[str, Boundary] = {"xmin": Outflow(), "xmax": Outflow(), "ymax": Outflow()}
    assert ShallowWater(sea, -1.0, 0.0, velocity, boundaries=sides).drawn == pytest.approx(wanted)


def down_the_slope(comm: Comm, kind: str, n: float, depth: float, slope: float, cfl: float, start: float) -> Any:
    """Return what water does in the middle of a plane that falls across the axes: along the fall, and across."""
    data = box2d(24, 24, (6000.0, 6000.0), kind=kind, perturb=0.2, seed=4)
    context = fl.Context("cpu", threads=1, tuning=False, comm=comm)
    plane = bind(data if comm.rank == 0 else None, context, maps=MAPS) if comm.size > 1 else bind(data, context)
    fall = np.array([np.cos(2.2), np.sin(2.2)])
    wanted = depth ** (2 / 3) * slope**0.5 / n
    sides: dict[str, Boundary] = dict.fromkeys(("xmin", "xmax", "ymin", "ymax"), Outflow())
    water = ShallowWater(
        plane, lambda x, y: -slope * (fall[0] * x + fall[1] * y),
        lambda x, y: depth - slope * (fall[0] * x + fall[1] * y), tuple(start * wanted * fall),
        scheme=ShallowScheme(manning=n, cfl=cfl), boundaries=sides,
    )  # fmt: skip
    water.advance_to(12.0 * wanted / (9.81 * slope))
    inside = (np.abs(plane.centroids.read()[: plane.cells.size] - 3000.0) < 500.0).all(axis=1)
    velocity = water.velocity()[inside]
    return velocity @ fall / wanted, velocity @ [-fall[1], fall[0]] / wanted, water.depth()[inside] / depth


@pytest.mark.parametrize(("ranks", "kind"), [(1, "triangle"), (2, "triangle"), (1, "quad")])
@pytest.mark.parametrize(
    ("n", "depth", "slope", "cfl", "start"),
    [(0.1, 0.1, 1e-3, 0.5, 0.0), (0.3, 0.02, 0.05, 0.05, 2.0), (0.05, 0.2, 4e-3, 0.5, 1.5)],
)
def test_friction_holds_a_slope_across_the_axes(
    ranks: int, kind: str, n: float, depth: float, slope: float, cfl: float, start: float
) -> None:
    """Also where the bed falls by hundreds of depths from cell to cell, between cells of any shape."""
    found = run_threads(ranks, down_the_slope, kind, n, depth, slope, cfl, start)
    along, across, deep = (np.concatenate(parts) for parts in zip(*found, strict=True))
    assert len(along) > 10
    assert np.abs(along - 1.0).max() < 1e-6
    assert np.abs(across).max() < 1e-6
    assert np.abs(deep - 1.0).max() < 1e-6


@pytest.mark.parametrize("cfl", [0.5, 0.02])
def test_stiff_friction_slows(cfl: float) -> None:
    """``|v| = v0 / (1 + k v0 t)`` to rounding, across the cells, with steps of up to forty times ``1 / (k v0)``."""
    n, depth, time = 0.1, 0.1, 4.0
    plane = bind(box2d(4, 4, (400.0, 400.0), kind="triangle", perturb=0.2), fl.Context("cpu", threads=1, tuning=False))
    sides: dict[str, Boundary] = dict.fromkeys(("xmin", "xmax", "ymin", "ymax"), Outflow())
    scheme = ShallowScheme(manning=n, cfl=cfl, longest=0.5 * time if cfl == 0.5 else 0.1)
    water = ShallowWater(plane, -depth, 0.0, (0.6, 0.8), scheme=scheme, boundaries=sides)
    water.advance_to(time)
    k = 9.81 * n**2 / depth ** (4 / 3)
    assert np.hypot(*water.velocity().T) == pytest.approx(1.0 / (1.0 + k * time), rel=1e-10)
    assert water.velocity()[:, 1] / water.velocity()[:, 0] == pytest.approx(4 / 3)


def test_friction_is_of_second_order_in_time() -> None:
    """Water that a slope turns aside while friction slows it, against steps that are much shorter."""

    def turned(longest: float) -> np.ndarray:
        plane = bind(box2d(20, 20, (2000.0, 2000.0)), fl.Context("cpu", threads=1, tuning=False))
        sides: dict[str, Boundary] = dict.fromkeys(("xmin", "xmax", "ymin", "ymax"), Outflow())
        water = ShallowWater(plane, lambda x, y: -0.01 * y, lambda x, y: 1.0 - 0.01 * y, (1.0, 0.0), boundaries=sides,
                             scheme=ShallowScheme(manning=0.1, longest=longest))  # fmt: skip
        water.advance_to(8.0)
        return water.velocity()[210]

    fine = turned(0.05)
    errors = [np.abs(turned(longest) - fine).max() for longest in (2.0, 1.0)]
    assert 1.7 < np.log2(errors[0] / errors[1]) < 2.6


def test_highest_surface_and_film() -> None:
    water = ShallowWater(mesh(), bed, hump, film=0.01)
    water.advance_to(0.3)
    top = water.highest_surface()
    assert np.isnan(top).any()
    wet = water.depth() > 0.01
    assert (top[wet] >= water.surface()[wet] - 1e-15).all()
    bare = ShallowWater(mesh(), bed, peak=False)
    with pytest.raises(SolverError, match="was not kept"):
        bare.highest_surface()


def test_gauges_share_cells() -> None:
    water = ShallowWater(mesh(4), bed, hump)
    centre = water.mesh.centroids.read()[5]
    gauges = WaterProbes(water, {"a": tuple(centre), "b": tuple(centre + 1e-6), "c": (0.9, 0.9)})
    gauges.sample()
    found = gauges.records.values()[1][0]
    assert (found[0] == found[1]).all()
    assert found[0, 1] == pytest.approx(water.surface()[5])
    assert found[0, 0] == pytest.approx(water.depth()[5])
    with pytest.raises(SolverError, match=r"probe 'out' at \(3.0, 0.5\) is not in the mesh"):
        WaterProbes(water, {"in": (0.5, 0.5), "out": (3.0, 0.5)})


def test_lost_solution_names_the_cell() -> None:
    water = ShallowWater(mesh(4), bed, hump)
    values = water.u.read()
    values[7, 1] = np.nan
    water.u.write(values)
    with pytest.raises(SolverError, match=r"the state of cell 7 at \(.*\) is not finite \(1 cells in all\); lower cfl"):
        water.check_finite()
    assert np.isnan(water.survey().change)
    water.advance_to(0.2)
    assert np.isnan(water.survey().change)


def test_mistakes() -> None:
    plane = mesh(4)
    with pytest.raises(MeshError, match="no patch 'xmim'; did you mean 'xmin'"):
        ShallowWater(plane, -1.0, boundaries={"xmim": Outflow()})
    with pytest.raises(SolverError, match=r"bed: the value of cell \d+ at .* is not finite"):
        ShallowWater(plane, lambda x, y: np.where(x > 0.9, np.nan, -1.0))
    with pytest.raises(SolverError, match="order must be 1 or 2"):
        ShallowScheme(order=3)
    with pytest.raises(SolverError, match="cfl must be positive"):
        ShallowScheme(cfl=0.0)
    with pytest.raises(SolverError, match="times of a series must increase, got 1 after 1"):
        TimeSeries(times=(0.0, 1.0, 1.0), numbers=np.zeros(3))
    lifted = MeshData(np.pad(plane.data.points, ((0, 0), (0, 1))), plane.data.cells)
    with pytest.raises(SolverError, match="plane mesh"):
        ShallowWater(bind(lifted, plane.context), -1.0)


def test_exact_solutions() -> None:
    """Shock relations, continuity at the ends of the fan, and the equations of the basin."""
    wet = DamBreak(1.0, 0.1, 9.81)
    depth, speed = wet.middle
    assert wet.front * (depth - 0.1) == pytest.approx(depth * speed)
    momentum = depth * speed**2 + 0.5 * 9.81 * (depth**2 - 0.1**2)
    assert wet.front * depth * speed == pytest.approx(momentum)
    x = np.linspace(-2.0, 2.0, 40_001)
    h, _ = wet(x, 0.3)
    jumps = np.abs(np.diff(h))
    assert (jumps > 1e-3).sum() == 1
    dry = DamBreak(1.0, 0.0, 9.81)
    assert dry.front == pytest.approx(2.0 * np.sqrt(9.81))
    assert dry(np.zeros(1), 1.0)[0][0] == pytest.approx(4.0 / 9.0)
    with pytest.raises(SolverError, match="left > right"):
        DamBreak(0.1, 1.0)
    basin = ParabolicBasin()
    a, b = basin.velocity(0.1), basin.velocity(0.1 + 1e-6)
    slope = basin.surface(np.array([0.0, 1.0]), np.zeros(2), 0.1)
    assert (b[0] - a[0]) / 1e-6 == pytest.approx(-basin.gravity * (slope[1] - slope[0]), rel=1e-4)
    assert solitary_runup(0.019, 19.85) == pytest.approx(0.089, abs=5e-4)
