"""Immersed boundaries against what is known of slow flows: arrays of cylinders and spheres, drums, settling disks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fluxloom.core.strategies import strategy_class
from fluxloom.lbm.collisions.operators import BGK, TRT
from fluxloom.lbm.immersed import (
    Contact,
    Elastic,
    Free,
    ImmersedBody,
    Roma,
    circle,
    ellipse,
    sphere,
)
from fluxloom.lbm.immersed.markers.deltas import Delta
from tests.immersed_tank import Tank, tank
from tests.lattice_names import immersed

NU = 1 / 6


def flow_of(shape: Sequence[int], bodies: Sequence[ImmersedBody], force: Sequence[float] = (), **named: object) -> Tank:
    options = {k: named.pop(k) for k in ("viscosity", "collision") if k in named}
    viscosity = options.pop("viscosity", NU)
    made = tank(tuple(shape), viscosity, force, **{"collision": TRT(), **options})
    return made.immerse(immersed(bodies, **named))  # type: ignore[arg-type]


def array_drag(share: float) -> float:
    """``F / (mu U)`` of a square array of cylinders, A. Sangani, A. Acrivos, Int. J. Multiphase Flow 8 (1982) 193."""
    return 4 * np.pi / (np.log(share**-0.5) - 0.738 + share - 0.887 * share**2 + 2.038 * share**3)


def sphere_drag(share: float) -> float:
    """``F / (6 pi mu a U)`` of a cubic array of spheres, H. Hasimoto, J. Fluid Mech. 5 (1959) 317, to fourth order."""
    return 1 / (1 - 1.7601 * share ** (1 / 3) + share - 1.5593 * share**2)


def cylinder_error(cells: int, **named: object) -> float:
    """Error of the drag of an array of cylinders whose diameter is 5/16 of the side of their cells."""
    radius, viscosity = 5 * cells / 32, named.get("viscosity", NU)
    inset = named.pop("inset", True)
    thickness = strategy_class(Delta, str(named.get("delta", "roma")))().thickness if inset else 0.0
    body = ImmersedBody("c", circle((cells / 2, cells / 2 + 0.3), radius - thickness))
    flow = flow_of((cells, cells), [body], (0.0, 1e-6), **named)
    flow.step(int(0.4 * cells**2 / float(viscosity)))  # type: ignore[arg-type]
    force, mean = flow.boundary.force_on("c")[1], flow.velocity()[..., 1].mean()
    return float(force / (float(viscosity) * mean) / array_drag(np.pi * radius**2 / cells**2) - 1)  # type: ignore[arg-type]


@pytest.mark.long
@pytest.mark.parametrize("delta", ["roma", "peskin"])
def test_drag_of_an_array_of_cylinders(delta: str) -> None:
    """Markers on the surface are felt about a third of a cell outside of it: first order. Moved in, it is better."""
    inset = [cylinder_error(cells, delta=delta) for cells in (16, 32, 64)]
    outside = [cylinder_error(cells, delta=delta, inset=False) for cells in (16, 32, 64)]
    assert abs(inset[2]) < 0.02
    assert np.log2(inset[0] / inset[1]) > 1.5
    assert np.log2(inset[1] / inset[2]) > 1.0
    assert all(abs(a) < 0.6 * abs(b) for a, b in zip(inset, outside, strict=True))
    assert 0.8 < np.log2(outside[1] / outside[2]) < 1.5


@pytest.mark.long
def test_the_place_of_the_wall_does_not_depend_on_the_viscosity() -> None:
    """With two relaxation times; with one it does."""
    two = [cylinder_error(32, viscosity=nu) for nu in (0.03, 0.5)]
    one = [cylinder_error(32, viscosity=nu, collision=BGK()) for nu in (0.03, 0.5)]
    assert abs(two[0] - two[1]) < 0.005
    assert abs(one[0] - one[1]) > 0.05


def couette(scale: int) -> tuple[float, float]:
    """Return the errors of the torque on a drum that turns in another one, and of the velocity between them."""
    inner, outer, spin = 4.0 * scale, 9.0 * scale, 0.02 / scale**2
    side, c = int(2 * outer + 6), Roma().thickness
    middle = (side / 2, side / 2 + 0.3)
    drums = [
        ImmersedBody("inner", circle(middle, inner - c).spinning(spin)),
        ImmersedBody("outer", circle(middle, outer + c)),
    ]
    flow = flow_of((side, side), drums)
    flow.step(int(0.6 * (outer - inner) ** 2 / NU))
    exact = -4 * np.pi * NU * spin * inner**2 * outer**2 / (outer**2 - inner**2)
    y, x = np.mgrid[:side, :side] - np.array(middle)[:, None, None]
    r, u = np.hypot(y, x), flow.velocity()
    around = (u[..., 0] * x - u[..., 1] * y) / r
    gap = (r > inner + 2) & (r < outer - 2)
    wanted = spin * inner**2 / (outer**2 - inner**2) * (outer**2 / r - r)
    return (
        float(flow.boundary.torque_on("inner")[0] / exact - 1),
        float(np.abs(around - wanted)[gap].max() / (spin * inner)),
    )


def test_a_drum_in_a_drum() -> None:
    torque, velocity = couette(1)
    assert abs(torque) < 0.06
    assert velocity < 0.02


@pytest.mark.long
def test_a_drum_in_a_drum_converges() -> None:
    torques, velocities = zip(*(couette(scale) for scale in (1, 2, 4)), strict=True)
    assert abs(torques[2]) < 0.01
    assert np.log2(torques[0] / torques[2]) / 2 > 1.2
    assert velocities[2] < 0.5 * velocities[1] < 0.4 * velocities[0]


@pytest.mark.long
def test_drag_of_an_array_of_spheres() -> None:
    errors = []
    for cells in (16, 32):
        radius = 3 * cells / 16
        body = ImmersedBody("s", sphere((cells / 2, cells / 2, cells / 2 + 0.3), radius - Roma().thickness))
        flow = flow_of((cells,) * 3, [body], (0.0, 0.0, 1e-6))
        flow.step(int(0.6 * cells**2 / NU))
        force, mean = flow.boundary.force_on("s")[2], flow.velocity()[..., 2].mean()
        share = 4 / 3 * np.pi * radius**3 / cells**3
        errors.append(force / (6 * np.pi * NU * radius * mean) / sphere_drag(share) - 1)
    assert abs(errors[1]) < 0.06
    assert abs(errors[1]) < 0.5 * abs(errors[0])


@pytest.mark.long
@pytest.mark.parametrize("density", [1.0 + 1e-9, 1.1, 4.0])
def test_a_settling_disk(density: float) -> None:
    """In a periodic box whose fluid is held up: its velocity is that of the array of cylinders, wherever it is."""
    cells, radius, wanted = 32, 5.0, 1e-3
    area = np.pi * radius**2
    weight = wanted * NU * array_drag(area / cells**2)
    free = Free(density * area, area, density * area * radius**2 / 2, gravity=(-weight / ((density - 1) * area), 0.0))
    body = ImmersedBody("disk", circle((16.0, 16.3), radius - Roma().thickness), free)
    flow = flow_of((cells, cells), [body], (weight / cells**2, 0.0))
    flow.step(3000)
    newton = flow.boundary.groups[0].newton
    falls, forces = [], []
    for _ in range(40):
        flow.step(49)
        before = flow.momentum()
        flow.step()
        forces.append(flow.boundary.force_on("disk"))
        assert np.abs(flow.momentum() - before - [weight, 0.0] + forces[-1]).max() < 1e-11, "nothing gets lost"
        falls.append(newton.velocity[0] - flow.velocity().mean(axis=(0, 1)))
    speed = -np.array(falls)[:, 0]
    assert speed.mean() == pytest.approx(wanted, rel=0.05)
    assert np.ptp(speed) < 2e-3 * wanted, "it falls evenly, wherever it is among the cells"
    assert np.mean(forces, axis=0)[0] == pytest.approx(weight, rel=1e-3)
    assert np.abs(np.array(falls)[:, 1]).max() < 2e-3 * wanted
    assert abs(newton.spin[0, 0]) < 1e-6
    whole = flow.momentum()[0] + (density - 1) * area * newton.velocity[0, 0]
    assert abs(whole) < 1e-2 * area * wanted, "body and fluid together stay at rest"


@pytest.mark.long
def test_disks_that_are_pressed_together_stay_apart() -> None:
    """Two disks fall towards each other, with and without a contact."""
    gaps = {}
    for contact in (None, Contact(strength=0.2, reach=2.0)):
        bodies = [
            ImmersedBody(name, circle((20.0, x), 5.0), Free.disk(5.0, 2.0, gravity=(0.0, g)))
            for name, x, g in (("left", 12.2, 5e-4), ("right", 28.0, -5e-4))
        ]
        flow = flow_of((40, 40), bodies, contact=contact, viscosity=0.05)
        apart = []
        for _ in range(60):
            flow.step(50)
            centres = [flow.boundary.centre(name) for name in ("left", "right")]
            apart.append(np.linalg.norm(centres[1] - centres[0]) - 10.0)
            if apart[-1] < 0.3:  # they would overlap next
                break
        gaps[contact is None] = np.array(apart)
    assert gaps[True].min() < 0.3 < 0.7 < gaps[False].min(), "without it they touch"
    assert gaps[False].size == 60
    assert np.ptp(gaps[False][-20:]) < 0.2, "in the end they rest"


@pytest.mark.long
@pytest.mark.parametrize(("delta", "loss"), [("roma", 0.02), ("peskin", 0.013)])
def test_an_elastic_ring_becomes_round(delta: str, loss: float) -> None:
    """An ellipse under tension becomes a circle of the same area, but for what leaks between its markers."""
    markers = ellipse((24.0, 24.0), (7.0, 14.0))
    flow = flow_of((48, 48), [ImmersedBody("ring", markers, Elastic(lengths=0.5))], delta=delta, viscosity=0.1)
    area = _area(markers.positions)
    flow.step(1600)
    ring = flow.boundary.positions("ring")
    radii = np.hypot(*(ring - ring.mean(axis=0)).T)
    assert radii.max() - radii.min() < 0.05
    assert 1 - loss < _area(ring) / area < 1.0
    assert np.abs(ring.mean(axis=0) - 24.0).max() < 1e-3
    assert radii.mean() == pytest.approx(np.sqrt(98.0), rel=loss)


def _area(points: np.ndarray) -> float:
    y, x = points.T
    return 0.5 * abs(float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum()))
