"""Lattice flows beside published results, small; `fluxloom verify lbm` has them in full."""

from __future__ import annotations

from collections.abc import Callable
from math import log2
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.cases.files.loading import load_case
from fluxloom.cases.lattice.body_tables import LatticeBodyTable
from fluxloom.cases.lattice.tables import LatticeCase
from fluxloom.core.errors import SolverError
from fluxloom.lbm.boundaries import Body, Wall
from fluxloom.lbm.collisions.operators import BGK, TRT, Cumulant
from fluxloom.lbm.immersed import ImmersedBody, ImmersedBoundary, Markers, circle, curve, ellipse, sphere, surface
from fluxloom.lbm.lattices import D2Q9
from fluxloom.lbm.shapes.sets import Complement
from fluxloom.lbm.shapes.shapes import Circle
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from fluxloom_lab.problems.lid_cavity import BOTELLA_PEYRET
from fluxloom_lab.verify.base import DataOptions
from fluxloom_lab.verify.lattice.bodies import BodyFlow, channel_cylinder, resampled, settle, shedding
from fluxloom_lab.verify.lattice.cavity import cavity, cavity_extremes
from fluxloom_lab.verify.lattice.checks import PARTS, LatticeVerification
from fluxloom_lab.verify.lattice.exact import balance_errors, mass_drift, offset_channel_error, shear_viscosity
from fluxloom_lab.verify.lattice.published import CHANNEL
from fluxloom_lab.verify.lattice.space import decay, enstrophy
from fluxloom_lab.verify.lattice.storage import stored_cavity
from fluxloom_lab.verify.registry import verifications
from tests.lattice_cases import immersed_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def context() -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False)


@pytest.mark.long
def test_viscosity_in_a_wind(context: fl.Context) -> None:
    """Populations relax to an equilibrium of second order in the speed; cumulants know of no frame."""
    assert shear_viscosity(context, BGK(), 0.1) == pytest.approx(0.97, rel=2e-3)
    assert shear_viscosity(context, Cumulant(), 0.1) == pytest.approx(1.0, rel=1e-3)


@pytest.mark.long
def test_walls_between_cells_and_mass(context: fl.Context) -> None:
    assert log2(offset_channel_error(context, 12) / offset_channel_error(context, 24)) == pytest.approx(2.0, abs=0.15)
    assert abs(mass_drift(context)) < 1e-13


def test_momentum_around_a_body_that_moves(context: fl.Context) -> None:
    """All that the body gives arrives: at once in the populations, half a step later in the velocity."""
    errors = balance_errors(context, steps=12)
    assert len(errors) == 2
    assert all(error < 1e-11 for error in errors.values()), errors


# ------------------------------------------------------------------------------------ markers inside
def test_markers_inside_of_a_surface() -> None:
    """They lie as far inside as asked for, as far apart as without, and stand for the surface on which they lie."""
    inner = circle((3.0, 4.0), 10.0, retract=0.4)
    assert np.hypot(*(inner.positions - (3.0, 4.0)).T) == pytest.approx(9.6)
    assert inner.measures.sum() == pytest.approx(2 * np.pi * 9.6)
    assert inner.count == round(2 * np.pi * 9.6)
    ball = sphere((0.0, 0.0, 0.0), 5.0, retract=0.25)
    assert np.linalg.norm(ball.positions, axis=1) == pytest.approx(4.75)
    assert ball.measures.sum() == pytest.approx(4 * np.pi * 4.75**2)
    outer = ellipse((0.0, 0.0), (5.0, 10.0), 0.3, spacing=0.01).positions
    eggs = ellipse((0.0, 0.0), (5.0, 10.0), 0.3, retract=0.3)
    nearest = np.linalg.norm(outer[:, None] - eggs.positions, axis=2).min(axis=0)
    assert nearest == pytest.approx(0.3, abs=1e-4)


@pytest.mark.parametrize("turned", [1, -1])
def test_markers_inside_of_a_polygon(turned: int) -> None:
    """An angle with an inner corner, in both senses: markers are on lines beside its edges."""
    corners = [(0.0, 0.0), (0.0, 9.0), (4.0, 9.0), (4.0, 5.0), (9.0, 5.0), (9.0, 0.0)][::turned]
    markers = curve(corners, spacing=0.1, retract=0.5)
    y, x = markers.positions.T
    inside = np.minimum.reduce([y, x, 9.0 - y, 9.0 - x, np.maximum(4.0 - y, 5.0 - x)])  # away from the edges
    assert inside == pytest.approx(0.5, abs=0.06)
    assert markers.measures.sum() == pytest.approx(36.0 - 4 * 0.5 * 2)


def test_markers_that_find_no_room() -> None:
    with pytest.raises(SolverError, match="0 to less than its radius 3 inside"):
        circle((0.0, 0.0), 3.0, retract=3.0)
    with pytest.raises(SolverError, match="0 to less than its radius 3 inside"):
        sphere((0.0, 0.0, 0.0), 3.0, retract=-0.1)
    box = [(0.0, 0.0), (0.0, 9.0), (1.0, 9.0), (1.0, 0.0)]
    for retract, closed in (0.6, True), (0.1, False), (-0.1, True):
        with pytest.raises(SolverError, match="cannot lie"):
            curve(box, closed=closed, retract=retract)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: circle((0.0, 0.0), 0.0), "circle: radius .* not 0.0"),
        (lambda: circle((0.0, 0.0), np.inf), "circle: radius .* not inf"),
        (lambda: circle((0.0, 0.0, 0.0), 3.0), "circle: centre has 2 finite numbers"),
        (lambda: circle((0.0, 0.0), 3.0, spacing=-1.0), "circle: spacing .* not -1.0"),
        (lambda: circle((0.0, 0.0), 3.0, count=2.5), "circle: count .* not 2.5"),  # pyright: ignore[reportArgumentType]
        (lambda: ellipse((0.0, 0.0), (3.0, -1.0)), "ellipse: its least radius"),
        (lambda: ellipse((0.0, 0.0), (3.0, 1.0), np.nan), "ellipse: angle"),
        (lambda: sphere((0.0, 0.0), 3.0), "sphere: centre has 3 finite numbers"),
        (lambda: sphere((0.0, 0.0, np.nan), 3.0), "sphere: centre has 3 finite numbers"),
        (lambda: curve([(0.0, 0.0), (0.0, 0.0)]), "curve: points .* not all the same"),
        (lambda: surface(np.zeros((2, 3, 3))), "surface: .* some triangle to have an area"),
        (lambda: surface(5.0 * np.eye(3)[None], spacing=0.0), "surface: spacing .* not 0.0"),
        (lambda: circle((0.0, 0.0), 3.0).moved((1.0, 2.0, 3.0)), "markers: shifts are of the shape"),
    ],
)
def test_markers_that_cannot_be(make: Callable[[], Markers], message: str) -> None:
    """One error names what makes them, and the value."""
    with pytest.raises(SolverError, match=message):
        make()


def test_markers_inside_in_a_case() -> None:
    """`retract` of a body is that of its markers; what has no markers has none."""
    case, _ = load_case(EXAMPLES / "lattice_moving.toml")
    tables = case.model_dump()
    markers = []
    for retract in 0.0, 0.35:
        tables["body"]["cylinder"]["retract"] = retract
        changed = LatticeCase.model_validate(tables)
        boundary = immersed_of(changed)
        assert boundary is not None
        places = boundary.bodies[0].markers.positions
        markers.append(float(np.linalg.norm(places - places.mean(axis=0), axis=1).max()))
    assert markers == pytest.approx([5.0, 4.65])
    solid = {"shape": "circle", "center": [0.0, 0.0], "diameter": 1.0, "retract": 0.3}
    with pytest.raises(ValueError, match="retract needs condition"):
        LatticeBodyTable.model_validate(solid)


def drum_error(context: fl.Context, radius: float, retract: float) -> float:
    """Error of the torque on an immersed drum that turns inside of a wall, Couette's flow between circles."""
    outer, spin, viscosity = 2.25 * radius, 0.02 / (radius / 4.0) ** 2, 1.0 / 6.0
    side = int(2 * outer + 6)
    middle = (side / 2, side / 2 + 0.3)
    pipe = Body("pipe", Complement(Circle(middle, outer)), Wall(interpolated=True))
    drum = ImmersedBoundary([ImmersedBody("drum", circle(middle, radius, retract=retract).spinning(spin))])
    flow = LatticeBoltzmann(
        context, (side, side), viscosity=viscosity, lattice=D2Q9, collision=TRT(), dtype="float64", bodies=[pipe],
        boundaries={name: Wall() for name in ("xmin", "xmax", "ymin", "ymax")},
    )  # fmt: skip
    flow.immerse(drum)
    flow.initialise()
    flow.step(2 * round(0.4 * (outer - radius) ** 2 / viscosity))
    exact = -4.0 * np.pi * viscosity * spin * radius**2 * outer**2 / (outer**2 - radius**2)
    return float(drum.torque_on("drum")[0] / exact - 1.0)


def test_markers_inside_make_a_drum_as_large_as_it_is(context: fl.Context) -> None:
    """With a radius of four cells the torque is a quarter too large, and right with markers 0.35 inside."""
    on, inside = drum_error(context, 4.0, 0.0), drum_error(context, 4.0, 0.35)
    assert on > 0.2
    assert abs(inside) < 0.03


@pytest.mark.long
def test_cylinder_in_a_channel_by_markers(context: fl.Context) -> None:
    """The drag of 2D-1 with ten cells in the diameter, and no slip at the markers."""
    case = channel_cylinder(context, 10, "retracted", speed=0.03)
    assert settle(case, 1e-4)[0] == pytest.approx(CHANNEL["drag"], rel=0.04)
    assert case.slip() < 0.02 * 0.03


def test_only_markers_have_a_slip(context: fl.Context) -> None:
    flow = LatticeBoltzmann(context, (4, 4), viscosity=0.1, lattice=D2Q9)
    with pytest.raises(SolverError, match="no markers"):
        BodyFlow(flow, 1.0, 1.0).slip()
    with pytest.raises(SolverError, match="did you mean 'retracted'"):
        channel_cylinder(context, 10, "retractd")


# ------------------------------------------------------------------------------------ what is looked at
def test_shedding_of_a_noisy_series() -> None:
    """Sound makes mean square and extremes too large; the wave of the shedding is found."""
    time = np.arange(0.0, 47.0, 0.05)
    lift = 0.01 + 0.34 * np.sin(2 * np.pi * 0.17 * time + 0.3) + 0.1 * np.sin(2 * np.pi * 1.93 * time)
    drag = 1.4 + 0.01 * np.sin(4 * np.pi * 0.17 * time)
    found, periods = shedding(time, np.stack([drag, lift], axis=1))
    assert periods == 7
    assert found.lift == pytest.approx(0.34, rel=0.005)
    assert found.noisy == pytest.approx(np.hypot(0.34, 0.1), rel=0.01)
    assert (found.drag, found.strouhal) == (pytest.approx(1.4, rel=1e-3), pytest.approx(0.17, rel=0.005))


def test_another_grid() -> None:
    """Linear fields are the same on another grid, up to its ends, where they are carried on."""
    y, x = np.mgrid[0.5:6.0, 0.5:9.0]
    fine = resampled(np.stack([2.0 * y - x, x], axis=-1), (12, 18))
    wanted_y, wanted_x = np.mgrid[0.25:6.0:0.5, 0.25:9.0:0.5]
    assert fine == pytest.approx(np.stack([2.0 * wanted_y - wanted_x, wanted_x], axis=-1))


def test_enstrophy_of_a_vortex() -> None:
    """Three eighths at the start; that of a wave of another length is the square of its number as large."""
    n, speed = 16, 0.1
    x = 2 * np.pi * np.arange(n) / n
    z, y, x = x[:, None, None], x[None, :, None], x[None, None, :]
    parts = [0.0 * (x + y + z), -np.cos(x) * np.sin(y) * np.cos(z), np.sin(x) * np.cos(y) * np.cos(z)]
    assert enstrophy(speed * np.stack(parts, axis=-1), speed) == pytest.approx(0.375, rel=1e-5)
    wave = np.stack([np.sin(3.0 * x) + 0.0 * (y + z), 0.0 * (x + y + z), 0.0 * (x + y + z)], axis=-1)
    assert enstrophy(wave, 1.0) == pytest.approx(0.25 * 9.0, rel=1e-5)


def test_parts() -> None:
    """Each part is a verification of its own; the whole has them all."""
    known = verifications()
    assert {f"lbm-{part}" for part in PARTS} <= set(known.names())
    assert all(PARTS[part][1] in known[f"lbm-{part}"].title for part in PARTS)
    told: list[str] = []
    assert not list(LatticeVerification(("vortex", "sphere", "boxes")).run(DataOptions(threads=1), told.append))
    assert "needs --data" in told[0]


@pytest.mark.long
def test_vortex_in_space_decays(context: fl.Context) -> None:
    """Energy starts at an eighth and falls with the enstrophy, 3/8, before vortices stretch."""
    found = decay(context, 32, end=1.0, reynolds=50.0, speed=0.05, samples=5, looks=1)
    assert found.energy[0] == pytest.approx(0.125, rel=1e-3)
    time, rate = found.rate()  # the first ones: stresses are not there yet at the start
    assert rate[2:4] == pytest.approx(0.015 * np.exp(-6.0 * time[2:4] / 50.0), rel=0.08)
    assert rate[2:] == pytest.approx(0.5 * (found.whirls[1:-1, 1] + found.whirls[2:, 1]) / 25.0, rel=0.05)


@pytest.mark.long
def test_cavity(context: fl.Context) -> None:
    _, velocity = cavity(context, 64)
    for name, value in cavity_extremes(velocity).items():
        assert value == pytest.approx(BOTELLA_PEYRET[name], rel=0.03)


@pytest.mark.long
def test_cavity_in_few_bits(context: fl.Context) -> None:
    """Half precision is a per cent off double, single none."""
    wide, single, half = (stored_cavity(context, dtype) for dtype in ("float64", "float32", "float16"))
    for name, value in wide.items():
        assert single[name] == pytest.approx(value, rel=1e-4)
        assert half[name] == pytest.approx(value, rel=0.02)


@pytest.mark.long
def test_all_quick_checks() -> None:
    failed = [check for check in LatticeVerification().run(DataOptions(threads=1), lambda _: None) if not check.ok]
    assert not failed, failed
