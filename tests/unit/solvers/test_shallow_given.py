"""What comes into shallow water from without: discharges through patches, rain, the stress of the wind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.fv.shallow.boundary import Boundary, Discharge, Level, Outflow
from fluxloom.fv.shallow.scheme import ShallowScheme
from fluxloom.mesh import MeshData, bind, box2d
from fluxloom.solvers.shallow.flow import ShallowWater
from fluxloom.values.tables import Profile, TimeSeries

GRAVITY = 9.81


def water(data: MeshData, bed: Any, *given: Any, device: str = "cpu", **options: Any) -> ShallowWater:
    return ShallowWater(bind(data, fl.Context(device, threads=1, tuning=False)), bed, *given, **options)


def island(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -0.6 + 0.9 * np.exp(-((x - 0.5) ** 2 + (y - 0.4) ** 2) / 0.03)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("bed", [-0.5, 0.0])
def test_what_comes_in_is_what_is_given(order: int, bed: float) -> None:
    """The volume is the integral of a discharge in place and time, into water and onto dry ground, to rounding."""
    data = box2d(10, 8, (2.0, 1.0), "triangle", perturb=0.2)
    sides: dict[str, Boundary] = {"xmin": Discharge("0.02 * (1 + y) * (1 + 2 * t)")}
    flow = water(data, bed, boundaries=sides, scheme=ShallowScheme(order=order))
    first = flow.survey().volume
    flow.advance_to(0.3)
    flow.advance_to(0.8)
    wanted = 0.02 * 1.5 * (0.8 + 0.8**2)
    assert flow.survey().inflow == pytest.approx(wanted, rel=1e-12)
    assert flow.survey().volume == pytest.approx(first + wanted, rel=1e-12)
    assert flow.depth().min() >= 0.0
    assert flow.steps > 20


@pytest.mark.parametrize("side", [Level(0.5), Discharge("0.5 + 0 * t")])
def test_a_dry_bed_is_reached_by_steps_that_are_short(side: Boundary) -> None:
    """Also where nothing is wet that could say how short: as by steps that are much shorter."""
    found = []
    for longest in (1e30, 0.02):
        flow = water(box2d(50, 1, (100.0, 2.0)), 0.0, boundaries={"xmin": side}, scheme=ShallowScheme(longest=longest))
        flow.advance_to(20.0)
        found.append(flow.depth())
    assert found[1].max() > 0.25
    np.testing.assert_allclose(found[0], found[1], atol=0.01)


def test_a_discharge_is_mirrored() -> None:
    """From the other side, along the other axis, from a table and from a function the same water flows."""
    times, points = np.linspace(0.0, 1.0, 3), np.array([0.0, 1.0])
    given: list[tuple[str, Any]] = [
        ("xmin", "0.1 + 0.2 * y"), ("xmin", Profile(along="y", points=points, numbers=0.1 + 0.2 * points)),
        ("xmin", lambda at: 0.1 + 0.2 * at[:, 1]), ("xmax", "0.1 + 0.2 * y"), ("ymin", "0.1 + 0.2 * x"),
        ("xmin", "0.1 * t"), ("xmin", TimeSeries(times=times, numbers=0.1 * times)), ("xmin", "0.1 * t + 0 * x"),
    ]  # fmt: skip
    found = []
    for patch, value in given:
        flow = water(box2d(8, 8), -0.5, boundaries={patch: Discharge(value)})
        flow.advance_to(0.5)
        found.append(flow.depth().reshape(8, 8))
    assert np.abs(found[0] - 0.5).max() > 0.05
    assert np.abs(found[0] - found[0][::-1]).max() > 0.01
    for same in (found[1], found[2]):
        np.testing.assert_allclose(same, found[0], rtol=1e-12)
    np.testing.assert_allclose(found[3], found[0][:, ::-1], rtol=1e-11)
    np.testing.assert_allclose(found[4], found[0].T, rtol=1e-11)
    for same in (found[6], found[7]):  # by other steps
        np.testing.assert_allclose(same, found[5], rtol=1e-5)


@pytest.mark.parametrize("order", [1, 2])
def test_uniform_flow_of_a_discharge(order: int) -> None:
    """Down a slope with friction a discharge keeps the depth of Manning, ``q = H^(5/3) S^(1/2) / n``."""
    n, slope, depth = 0.05, 1e-2, 0.4
    q = depth ** (5 / 3) * slope**0.5 / n
    assert q / depth < 0.8 * np.sqrt(GRAVITY * depth)
    sides: dict[str, Boundary] = {"xmin": Discharge(q), "xmax": Level(depth - slope * 400.0)}
    flow = water(
        box2d(200, 1, (400.0, 4.0)), lambda x, y: -slope * x, lambda x, y: depth - slope * x, (q / depth, 0.0),
        boundaries=sides, scheme=ShallowScheme(order=order, manning=n),
    )  # fmt: skip
    flow.advance_to(200.0)
    inside = np.abs(flow.mesh.centroids.read()[:, 0] - 200.0) < 100.0
    assert (flow.depth() * flow.velocity()[:, 0])[inside] == pytest.approx(q, rel=1e-3 if order == 2 else 0.03)
    assert flow.depth()[inside] == pytest.approx(depth, rel=5e-3 if order == 2 else 0.03)
    assert flow.survey().inflow == pytest.approx(0.0, abs=0.01 * q * 4.0 * 200.0)


def test_no_more_leaves_than_can() -> None:
    """From water at rest at most ``8/27 sqrt(g) H^(3/2)``, that of a broken dam, whatever is asked for."""
    for asked, wanted in ((-0.1, 0.1), (-0.9, 0.9), (-50.0, 8.0 / 27.0 * GRAVITY**0.5)):
        flow = water(box2d(4, 4), -1.0, boundaries={"xmin": Discharge(asked)}, scheme=ShallowScheme(order=1))
        flow.advance_to(1e-7)
        assert flow.survey().inflow == pytest.approx(-wanted * 1e-7, rel=1e-5)
    flow = water(box2d(4, 4), -1.0, boundaries={"xmin": Discharge(-50.0)})
    flow.advance_to(5.0)
    assert flow.depth().min() >= 0.0
    assert flow.survey().volume < 0.2
    assert abs(flow.survey().defect) < 1e-13


@pytest.mark.parametrize("order", [1, 2])
def test_rain_is_its_integral(order: int) -> None:
    """On water and on an island that is dry at first; and the water that it is counted for."""
    data = box2d(10, 10, kind="triangle", perturb=0.2, seed=3)
    for rain, wanted in (("0.01", 0.01 * 0.7), (0.01, 0.01 * 0.7), ("0.1 * t", 0.05 * 0.49), ("0.02 * x * t", None)):
        flow = water(data, island, scheme=ShallowScheme(order=order, rain=rain))
        first = flow.survey().volume
        flow.advance_to(0.4)
        flow.advance_to(0.7)
        if wanted is None:
            areas = flow.mesh.volumes.read().reshape(-1)
            wanted = 0.01 * 0.49 * float(areas @ flow.mesh.centroids.read()[:, 0])
        assert flow.survey().volume - first == pytest.approx(wanted, rel=1e-11)
        assert flow.survey().inflow == pytest.approx(wanted, rel=1e-11)
        assert flow.depth().min() > 0.0


PULSE = TimeSeries(times=np.array([0.0, 100.0, 101.0, 110.0, 111.0, 1e3]), numbers=np.array([0, 0, 1e-4, 1e-4, 0, 0]))


@pytest.mark.parametrize(("rain", "off"), [
    (PULSE, 1e-12), ("where(abs(t - 105.5) < 5, 1e-4, 0)", 0.01), ("where(abs(t - 105.5) < 5, 1e-4, 0) * x / 50", 0.1),
])  # fmt: skip
def test_a_shower_on_dry_ground_is_not_stepped_over(rain: Any, off: float) -> None:
    """Nothing flows before it, and nothing bounds the steps."""
    flow = water(box2d(8, 2, (100.0, 20.0)), 0.0, scheme=ShallowScheme(rain=rain))
    for time in np.linspace(0.0, 1000.0, 21)[1:]:
        flow.advance_to(float(time))
    assert flow.survey().volume == pytest.approx(1e-4 * 10.0 * 2000.0, rel=off)
    assert flow.steps < 1000


def test_steps_of_one_length_that_pass_over_a_shower() -> None:
    flow = water(box2d(8, 2, (100.0, 20.0)), 0.0, scheme=ShallowScheme(rain=PULSE, dt=5.0))
    flow.advance_to(1000.0)
    assert flow.survey().volume == pytest.approx(2.0, rel=1e-12)
    flow = water(box2d(8, 2, (100.0, 20.0)), 0.0, scheme=ShallowScheme(rain=PULSE, dt=50.0))
    with pytest.raises(SolverError, match=r"dt: steps of 50 s pass over what .* is from 0 s on: lower dt"):
        flow.advance_to(1000.0)


@pytest.mark.parametrize("side", [Discharge(PULSE * 1e3), Discharge("where(abs(t - 105.5) < 5, 0.1, 0)")])
def test_a_pulse_onto_dry_ground_is_not_stepped_over(side: Boundary) -> None:
    flow = water(box2d(8, 2, (100.0, 20.0)), 0.0, boundaries={"xmin": side})
    flow.advance_to(1000.0)
    assert flow.survey().volume == pytest.approx(0.1 * 10.0 * 20.0, rel=0.02)


def test_rain_on_a_level_pool() -> None:
    """It rises evenly, and nothing moves."""
    flow = water(box2d(6, 6, kind="triangle", perturb=0.2), -1.0, scheme=ShallowScheme(rain="0.1 * (1 + t)"))
    flow.advance_to(1.0)
    assert flow.depth() == pytest.approx(1.15, rel=1e-12)
    assert np.abs(flow.velocity()).max() < 1e-13


def test_rain_runs_off_a_dry_plane() -> None:
    """In the end ``q = R x``, at the depth of Manning; the plane is dry at first, and the first steps are short."""
    n, slope, rain, length = 0.02, 0.02, 2e-5, 100.0
    scheme = ShallowScheme(manning=n, rain=rain)
    flow = water(box2d(50, 1, (length, 2.0)), lambda x, y: -slope * x, -slope * length - 1.0, scheme=scheme,
                 boundaries={"xmax": Outflow()})  # fmt: skip
    assert flow.depth().max() == 0.0
    assert flow.next_step() < 60.0
    with pytest.raises(SolverError, match=r"dt: steps of 60 s are longer than cfl = 0.5 allows, .*: lower dt"):
        water(box2d(50, 1, (length, 2.0)), 0.0, -1.0, scheme=ShallowScheme(rain=rain, dt=60.0)).check_step()
    flow.advance_to(1000.0)
    x = flow.mesh.centroids.read()[:, 0]
    inside = (x > 20.0) & (x < 95.0)
    assert (flow.depth() * flow.velocity()[:, 0])[inside] == pytest.approx(rain * x[inside], rel=0.01)
    assert flow.depth()[inside] == pytest.approx((rain * x[inside] * n / slope**0.5) ** 0.6, rel=0.03)


@pytest.mark.parametrize(("order", "manning", "end"), [(1, 0.1, 400.0), (2, 0.3, 1600.0)])
def test_wind_sets_the_water_up(order: int, manning: float, end: float) -> None:
    """In a closed basin ``g H dH/dx = tau / rho``: the surface comes to lean so that it holds the wind."""
    stress, depth, length = 40.0, 1.0, 20.0
    scheme = ShallowScheme(order=order, wind_stress=(stress, 0.0), manning=manning)
    flow = water(box2d(40, 2, (length, 1.0)), -depth, scheme=scheme)
    flow.advance_to(end)
    x = flow.mesh.centroids.read()[:, 0]
    slope = np.polyfit(x, flow.surface(), 1)[0]
    assert slope == pytest.approx(stress / (1000.0 * GRAVITY * depth), rel=0.01)
    exact = np.sqrt(2.0 * stress / 1000.0 / GRAVITY * (x - 0.5 * length) + depth**2)
    np.testing.assert_allclose(flow.depth(), exact, atol=0.01 * np.ptp(exact))
    assert np.abs(flow.velocity()).max() < 5e-3
    assert abs(flow.survey().defect) < 1e-13


def test_wind_along_each_axis_and_by_any_value() -> None:
    """Turned by a right angle, and as a formula, a series and a function, it moves the water alike; thin water less."""
    times = np.array([0.0, 1.0])
    sway = TimeSeries(times=times, numbers=5.0 * times)
    found = []
    for stress in (("5 * t", 0), (sway, 0), (lambda at, t: 5.0 * t + 0.0 * at[:, 0], 0), (0, "5 * t")):
        flow = water(box2d(8, 8), -0.5, scheme=ShallowScheme(wind_stress=stress, density=500.0))
        flow.advance_to(0.15)
        found.append(flow.u.read().reshape(8, 8, 3))
    assert found[0][4, 4, 1] == pytest.approx(0.5 * 0.01 * 0.15**2, rel=3e-3)
    for same in found[1:3]:
        np.testing.assert_allclose(same, found[0], atol=1e-12)
    np.testing.assert_allclose(found[3].transpose(1, 0, 2)[..., [0, 2, 1]], found[0], atol=1e-13)
    thin = water(box2d(4, 4), lambda x, y: np.where(x < 0.5, -1.0, -5e-5), scheme=ShallowScheme(wind_stress=(1.0, 0)))
    thin.advance_to(1e-3)
    speed = thin.velocity()[:, 0].reshape(4, 4)
    assert speed[1, 3] == pytest.approx(1e-3 * 1e-3 * 0.5 / 5e-5, rel=1e-3)


@pytest.mark.parametrize("order", [1, 2])
def test_rest_with_nothing_given(order: int) -> None:
    """Round an island a lake stays at rest, with rain, wind and discharge of zero."""
    scheme = ShallowScheme(order=order, rain="0 * t * x", wind_stress=("0 * t", 0))
    data = box2d(12, 12, kind="triangle", perturb=0.2, seed=3)
    flow = water(data, island, scheme=scheme, boundaries={"xmin": Discharge("0 * t * y"), "ymax": Discharge(0.0)})
    dry = flow.depth() == 0.0
    assert 3 < dry.sum() < 60
    flow.advance_to(0.5)
    assert np.abs(flow.u.read()[:, 1:]).max() < 2e-14
    assert np.abs(flow.surface()[~dry]).max() < 1e-13
    assert (flow.depth()[dry] == 0.0).all()


def test_fusion_devices_and_precision() -> None:
    """Fused and plain, compiled and as Python, the same; single precision to its digits; with steps of one length."""
    sides: dict[str, Boundary] = {"xmin": Discharge("0.1 * t * y"), "xmax": Discharge("-0.05 * t")}
    given: dict[str, Any] = {"rain": "0.1 * x * t", "wind_stress": (3.0, "y * t")}
    found = []
    for device, options, dt in (
        ("cpu", {}, 0.0), ("cpu", {"fused": False}, 0.0), ("reference", {}, 0.0), ("cpu", {"dtype": "float32"}, 0.0),
        ("cpu", {}, 0.004),
    ):  # fmt: skip
        flow = water(box2d(6, 6, kind="triangle", perturb=0.2), -0.5, boundaries=sides, device=device,
                     scheme=ShallowScheme(dt=dt, **given), **options)  # fmt: skip
        flow.advance_to(0.3)
        found.append(flow.u.read())
    assert np.abs(found[0][:, 1:]).max() > 0.01
    for same, close in zip(found[1:], (1e-13, 1e-12, 2e-6, 2e-4), strict=True):
        np.testing.assert_allclose(same, found[0], atol=close)


def test_mistakes() -> None:
    data = box2d(4, 4)
    mistakes: tuple[tuple[dict[str, Any], str], ...] = (
        ({"rain": -1.0}, "rain: -1 is below 0 in cell 0 at"), ({"rain": "x - 1"}, "rain: 'x - 1' is below 0 in cell"),
        ({"rain": "1 / (x > 0.5)"}, "rain: .* is inf at"), ({"wind_stress": (1.0,)}, "wind_stress: a vector of 2"),
        ({"density": 0.0}, "density must be positive"), ({"rain": [1.0]}, "rain: a number, a formula in quotes"),
    )  # fmt: skip
    for given, message in mistakes:
        with pytest.raises(SolverError, match=message):
            water(data, -1.0, scheme=ShallowScheme(**given))
    flow = water(data, -1.0, scheme=ShallowScheme(rain=TimeSeries(times=(0.0, 1.0), numbers=(0.0, 1.0))))
    with pytest.raises(SolverError, match="rain: a series: it goes from 0 to 1 and has no value at t = 2"):
        flow.advance_to(2.0)
