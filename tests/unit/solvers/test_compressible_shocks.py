"""Shocks that stay plane and slow flow that keeps its energy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.boundary import BoundaryCondition, SlipWall, SupersonicInlet, SupersonicOutlet
from fluxloom.fv.compressible.fluxes import Flux
from fluxloom.fv.compressible.gas import Gas, normal_shock
from fluxloom.fv.compressible.kernels import steepness
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.mesh import MeshData, box2d
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme

LONG = pytest.mark.long
GAS = Gas(constant=1.0)


def blunt(along: int, across: int) -> MeshData:
    """Return quads ahead of a cylinder of radius 1, in lines along its bow shock."""
    mesh = box2d(along, across)
    turn, far = np.pi * (mesh.points[:, 0] - 0.5), mesh.points[:, 1]
    last = 1.0 / np.sqrt((np.cos(turn) / 1.6) ** 2 + (np.sin(turn) / 3.0) ** 2)
    r = 1.0 + (last - 1.0) * far
    return replace(mesh, points=np.column_stack([-r * np.cos(turn), r * np.sin(turn)]))


@pytest.mark.parametrize(
    ("flux", "order"),
    [("roe", 1), ("hllc", 2), *(pytest.param(flux, order, marks=LONG) for flux in Flux.choices for order in (1, 2))],
)
def test_pitot_pressure_behind_a_bow_shock(flux: str, order: int) -> None:
    """The carbuncle leaves half of it."""
    mach, n = 10.0, 64
    volumes = control_volumes(blunt(n, 16))
    stream = (1.0, mach * np.sqrt(1.4), 0.0, 1.0)
    sides = {"ymin": SlipWall(), "ymax": SupersonicInlet(stream), "xmin": SupersonicOutlet(),
             "xmax": SupersonicOutlet()}  # fmt: skip
    context = fl.Context("cpu", threads=1, tuning=False)
    scheme = CompressibleScheme(flux=Flux.choices[flux](), order=order, cfl=0.6)
    flow = CompressibleFlow(context, volumes, sides, GAS, scheme)
    flow.start(np.array(stream))
    flow.iterate(1400)
    pitot = normal_shock(mach).total_pressure * (1.0 + 0.2 * mach * mach) ** 3.5
    x, p = volumes.centres[: volumes.cells], flow.states()[:, 3] / pitot
    front = (np.hypot(*x.T) < 1.05) & (np.abs(x[:, 1]) < 0.06)
    assert front.sum() == 2
    np.testing.assert_allclose(p[front], 1.0, atol=0.02)
    assert p.max() < 1.02


def ends_of(mach: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the states behind and before a shock that runs into gas at rest, and its speed."""
    found, sound = normal_shock(mach), np.sqrt(1.4)
    behind = np.array([found.density, mach * sound * (1.0 - 1.0 / found.density), 0.0, found.pressure])
    return behind, np.array([1.0, 0.0, 0.0, 1.0]), mach * sound


def duct(behind: np.ndarray) -> dict[str, BoundaryCondition]:
    """Return boundaries of a duct with a shock that runs to the right."""
    wall = SlipWall()
    return {"xmin": SupersonicInlet(behind.tolist()), "xmax": SupersonicOutlet(), "ymin": wall, "ymax": wall}


@pytest.mark.parametrize(
    ("flux", "order"),
    [("roe", 1), ("hllc", 1), pytest.param("ausm+-up", 1, marks=LONG), pytest.param("roe", 2, marks=LONG),
     pytest.param("hllc", 2, marks=LONG)],
)  # fmt: skip
def test_a_plane_shock_stays_plane(flux: str, order: int) -> None:
    """Nodes along the middle of the duct are off by 1e-4 of a cell; without care the shock breaks up."""
    n = 100
    mesh = box2d(n, 20, (float(n), 20.0))
    points = mesh.points.copy()
    middle = np.abs(points[:, 1] - 10.0) < 1e-9
    points[middle, 1] += 1e-4 * (-1.0) ** np.round(points[middle, 0])
    volumes = control_volumes(replace(mesh, points=points))
    behind, before, speed = ends_of(6.0)
    sides = duct(behind)
    context = fl.Context("cpu", threads=1, tuning=False)
    scheme = CompressibleScheme(flux=Flux.choices[flux](), order=order, cfl=0.5)
    flow = CompressibleFlow(context, volumes, sides, GAS, scheme)
    flow.start(lambda x: np.where(x[:, :1] < 5.0, behind, before))
    flow.advance_to(85.0 / speed)
    column = volumes.centres[: volumes.cells, 0].astype(int)
    density = flow.states()[:, 0]
    mean = np.bincount(column, density) / np.bincount(column)
    assert np.abs(density - mean[column]).max() < 3e-4  # without care 2e-3, and growing
    assert np.count_nonzero(mean > 3.0) == pytest.approx(90, abs=3)  # of 5.3 behind


def test_a_shock_along_the_faces_is_as_sharp_as_ever() -> None:
    """Across a plane shock nothing is added: rows of cells are the same bits as one row."""
    behind, before, _ = ends_of(3.0)
    found = []
    for rows in (1, 3):
        volumes = control_volumes(box2d(40, rows, (40.0, float(rows))))
        sides = duct(behind)
        flow = CompressibleFlow(fl.Context("cpu", threads=1, tuning=False), volumes, sides, GAS)
        flow.start(lambda x: np.where(x[:, :1] < 5.0, behind, before))
        for _ in range(40):
            flow.advance(0.08)
        assert flow.time == pytest.approx(3.2)
        found.append(flow.states()[:, 0].reshape(rows, 40))
    np.testing.assert_allclose(found[1], np.tile(found[0], (3, 1)), rtol=1e-12)


def test_what_passes_a_face_fast_is_no_shock_across_it() -> None:
    """The pressure rises along a face, in gas that is pressed together: at rest, or with Mach 0.6 or 2 through it."""
    w, slope, normal = [1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0], [0.0, 1.0]
    along = [0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    sound = 1.4**0.5
    found = [steepness(w, w, along, along, normal, mach * sound, 1.0, 1.4, 2) for mach in (0.0, 0.6, -0.6, 2.0)]
    np.testing.assert_allclose(found, [1.0, 0.64, 0.64, 0.0])
    assert steepness(w, w, slope, slope, normal, 0.0, 1.0, 1.4, 2) == 0.0  # the shock is along the face


def gresho(mach: float, n: int, **scheme: object) -> float:
    """Return how much of its energy Gresho's vortex keeps in a quarter of a turn."""
    volumes = control_volumes(box2d(n, n), [("xmin", "xmax"), ("ymin", "ymax")])
    context = fl.Context("cpu", threads=1, tuning=False)
    flow = CompressibleFlow(context, volumes, {}, GAS, CompressibleScheme(**scheme))  # type: ignore[arg-type]

    def vortex(x: np.ndarray) -> np.ndarray:
        way = x - 0.5
        r = np.maximum(np.hypot(*way.T), 1e-9)
        turn = np.where(r < 0.2, 5.0, np.where(r < 0.4, 2.0 / r - 5.0, 0.0))
        ring = 12.5 * r * r + 4.0 * (1.0 - 5.0 * r - np.log(0.2) + np.log(r))
        p = np.where(r < 0.2, 12.5 * r * r, np.where(r < 0.4, ring, 4.0 * np.log(2.0) - 2.0))
        base = 1.0 / (1.4 * mach * mach) - 0.5
        return np.column_stack([np.ones(len(x)), -turn * way[:, 1], turn * way[:, 0], base + p])

    flow.start(vortex)
    energy = [(flow.states()[:, 0] * (flow.states()[:, 1:3] ** 2).sum(axis=1)).sum()]
    flow.advance_to(0.1 * np.pi)
    energy.append((flow.states()[:, 0] * (flow.states()[:, 1:3] ** 2).sum(axis=1)).sum())
    return energy[1] / energy[0]


@pytest.mark.parametrize("flux", ["roe", "hllc"])
def test_slow_flow_keeps_its_energy(flux: str) -> None:
    kept = [gresho(mach, 24, flux=Flux.choices[flux](), low_mach=True) for mach in (0.1, 0.02)]
    assert min(kept) > 0.96
    assert kept[1] == pytest.approx(kept[0], abs=0.01)  # whatever the Mach number
    assert gresho(0.02, 24, flux=Flux.choices[flux]()) < 0.9


@pytest.mark.parametrize(
    ("velocity", "exact", "message"),
    [
        ((0.3, 0.0), False, r"patch 'xmin': state: at 2 of 2 faces it is slower than sound: Mach 0.254, 0.254 along"),
        ((-3.0, 0.0), False, r"at 2 of 2 faces it leads out of the domain: Mach 2.54, -2.54 along the normal into"),
        ((3.0, 0.0), False, ""),
        ((0.3, 2.0), False, ""),  # faster than sound, though not along the normal
        ((0.3, 0.0), True, ""),
    ],
)
def test_states_of_supersonic_inlets(velocity: tuple[float, float], exact: bool, message: str) -> None:
    volumes = control_volumes(box2d(2, 2))
    inlet = SupersonicInlet((1.0, *velocity, 1.0), 0.0, exact)
    sides = {name: SlipWall() for name in volumes.patches} | {"xmin": inlet}

    def build() -> CompressibleFlow:
        return CompressibleFlow(fl.Context("cpu", threads=1, tuning=False), volumes, sides, GAS)

    if message:
        with pytest.raises(SolverError, match=message):
            build()
    else:
        assert build().boundary.size == 8
