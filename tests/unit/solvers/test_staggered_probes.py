"""Probes of flow on a staggered grid: linear fields, what boundaries give, both ends of joined axes."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.fv.incompressible.boundary import Boundary, Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.staggered.grid import StaggeredGrid
from fluxloom.mesh.generate.boxes import clustered
from fluxloom.solvers.staggered.flow import Staggered
from fluxloom.solvers.staggered.probes import StaggeredProbes

Array = np.ndarray


def flow_of(d: int, boundaries: dict[str, Boundary], stretch: float = 0.0, joined: str = "") -> Staggered:
    counts = (5, 4, 6)[:d]
    faces = [np.linspace(0.0, 1.0 + 0.5 * k, n + 1) for k, n in enumerate(counts)]
    if stretch:
        faces[1] = 1.5 * clustered(stretch)(np.arange(counts[1] + 1) / counts[1])
    grid = StaggeredGrid(tuple(faces), tuple("xyz"[k] in joined for k in range(d)))
    return Staggered(fl.Context("cpu", threads=1, tuning=False), grid, 0.1, boundaries)


def seen(flow: Staggered, places: Array) -> Array:
    probes = StaggeredProbes(flow, {f"{k}": place for k, place in enumerate(places.tolist())}, 2)
    probes.sample()
    return probes.records.values()[1][0]


@pytest.mark.parametrize(("d", "stretch"), [(2, 0.0), (2, 1.4), (3, 0.0), (3, 1.4)])
def test_linear_fields_are_exact(d: int, stretch: float) -> None:
    """Velocity wherever faces are around, the pressure up to the sides; it has the mean zero."""
    sides: dict[str, Boundary] = {f"{axis}{end}": Symmetry() for axis in "xyz"[:d] for end in ("min", "max")}
    flow, random = flow_of(d, sides, stretch), np.random.default_rng(1)
    grid, slope = flow.grid, random.normal(size=(d, d))
    whole = np.zeros((*grid.full_shape, d))
    for a in range(d):
        parts = [at * slope[a, k] for k, at in enumerate(grid.places(a))]
        whole[(*grid.face_window(a), a)] = 0.3 + sum(parts)
    flow.fields.u.write(whole)
    potential = flow.impulse()[0]
    q = np.zeros(grid.full_shape)
    q[grid.interior] = 2.0 + sum(grid.along(k, grid.centres(k)) * slope[k, 0] for k in range(d))
    potential.write(q)
    low = np.array([grid.centres(k)[0] for k in range(d)])
    high = np.array([grid.centres(k)[-1] for k in range(d)])
    places = low + random.random((20, d)) * (high - low)
    np.testing.assert_allclose(seen(flow, places)[:, :d], 0.3 + places @ slope.T, atol=1e-12)
    middle = np.array([0.5, 0.75, 1.0][:d])
    corners = np.array([faces[[0, -1]] for faces in grid.faces])
    ends = np.stack([m.ravel() for m in np.meshgrid(*corners)], axis=1)
    np.testing.assert_allclose(seen(flow, ends)[:, d], (ends - middle) @ slope[:, 0], atol=1e-12)


@pytest.mark.parametrize("d", [2, 3])
def test_a_stream_reaches_every_corner(d: int) -> None:
    """Where places beyond several sides meet there is the same velocity too."""
    sides: dict[str, Boundary] = {f"{axis}{end}": Symmetry() for axis in "yz"[: d - 1] for end in ("min", "max")}
    flow = flow_of(d, {"xmin": Inflow((1.0, 0.0, 0.0)[:d]), "xmax": Outflow()} | sides, 1.2)
    flow.initialise(lambda x: np.eye(1, d).repeat(len(x), axis=0))
    flow.step(0.01)
    ends = np.stack([m.ravel() for m in np.meshgrid(*(faces[[0, -1]] for faces in flow.grid.faces))], axis=1)
    np.testing.assert_allclose(seen(flow, ends), np.eye(1, d + 1).repeat(len(ends), axis=0), atol=1e-12)


def test_walls_and_joined_ends() -> None:
    """Between walls of which one moves: exact up to both, and the same at both ends of the direction that is joined."""
    flow = flow_of(2, {"ymin": NoSlip(), "ymax": NoSlip((3.0, 0.0))}, 1.3, "x")
    flow.initialise(lambda x: np.stack([2.0 * x[:, 1], np.zeros(len(x))], axis=1))
    places = np.array([[x, y] for x in (0.0, 0.05, 0.43, 0.97, 1.0) for y in (0.0, 0.02, 0.8, 1.5)])
    found = seen(flow, places)
    np.testing.assert_allclose(found[:, 0], 2.0 * places[:, 1], atol=1e-12)
    np.testing.assert_allclose(found[:, 1:], 0.0, atol=1e-12)


def test_periodic_values_are_those_of_cells() -> None:
    """In the middle of cells: the mean of their faces, and the pressure of the cell."""
    flow = flow_of(3, {}, joined="xyz")
    flow.initialise(lambda x: np.stack([np.sin(6 * x[:, 1]), np.cos(6 * x[:, 2]), np.sin(6 * x[:, 0])], axis=1))
    flow.step(0.01)
    z, y, x = np.meshgrid(*(flow.grid.centres(k) for k in (2, 1, 0)), indexing="ij")
    found = seen(flow, np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1))
    np.testing.assert_allclose(found[:, :3], flow.velocity(), atol=1e-13)
    np.testing.assert_allclose(found[:, 3], flow.pressure(), atol=1e-12)


def test_outside() -> None:
    flow = flow_of(2, {}, joined="xy")
    with pytest.raises(SolverError, match=r"probe 'a' at \(1\.2, 0\.0\) is not in the mesh"):
        StaggeredProbes(flow, {"a": (1.2, 0.0)})
    assert StaggeredProbes(flow, {"a": (1.2, 0.0), "b": (0.2, 0.0)}, outside="leave out").names == ("b",)
