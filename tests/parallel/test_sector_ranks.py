"""Sectors on several ranks: images of cells that other ranks own, and the states of one rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import MeshError
from fluxloom.fv.compressible.boundary import (
    BoundaryCondition,
    NoSlipWall,
    PressureOutlet,
    SlipWall,
    SupersonicInlet,
    TotalInlet,
)
from fluxloom.fv.compressible.gas import Gas, Sutherland
from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras
from fluxloom.fv.geometry.cell_faces import Rotation
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, shared_volumes
from fluxloom.fv.geometry.sectors import Sector
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.mesh import MeshData, box2d, box3d
from fluxloom.mesh.geometry.dual import dual
from fluxloom.mesh.ranks.distribute import part_of
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.implicit import Implicit, SteadySteps
from fluxloom.solvers.compressible.scheme import CompressibleScheme, OverFaces
from fluxloom_lab.strategies.cell_loop import OverCells

LOOPS = {"faces": OverFaces(), "cells": OverCells()}
SECTORS = [Sector("ymin", "ymax")]
GAS = Gas(constant=1.0, viscosity=Sutherland(0.02, 1.0, 0.5))


def passage(dimension: int, kind: str = "auto") -> MeshData:
    """Return a fifth of an annulus between the radii 1 and 2."""
    size = (1.0, 1.0, 0.7)
    if dimension == 3:
        mesh = box3d(4, 5, 3, size, "hexahedron" if kind == "auto" else kind)
    else:
        mesh = box2d(6, 7, size[:2], "quad" if kind == "auto" else kind)
    r, t = 1.0 + mesh.points[:, 0], mesh.points[:, 1]
    t = 0.4 * np.pi * (t + 0.1 * (r - 1.0) ** 2 + 0.03 * np.sin(2.0 * np.pi * t) * (r - 1.0))
    points = mesh.points.copy()
    points[:, 0], points[:, 1] = r * np.cos(t), r * np.sin(t)
    return MeshData(points, mesh.cells, mesh.patches, mesh.source)


def volumes_of(comm: Comm, mesh: MeshData, sectors: list[Sector] = SECTORS) -> ControlVolumes:
    """Return this rank's control volumes."""
    return shared_volumes(part_of(comm, mesh, method="rcb", maps=FLOW_MAPS), sectors=sectors)


def states(places: np.ndarray) -> np.ndarray:
    """Return a flow around and along the axis."""
    d = places.shape[1]
    r, t = np.hypot(places[:, 0], places[:, 1]), np.arctan2(places[:, 1], places[:, 0])
    wave = np.cos(5.0 * t)
    around, along = 0.3 * r + 0.05 * np.sin(5.0 * t), [0.4 + 0.1 * r * wave] if d == 3 else []
    return np.stack([1.0 + 0.1 * wave, -around * np.sin(t), around * np.cos(t), *along, 1.0 + 0.05 * r * wave,
                     0.05 * (1.5 + wave)], axis=1)  # fmt: skip


def run(
    comm: Comm, mesh: MeshData, turbulent: bool = True, **scheme: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and states of the cells of this rank, after some steps in a sector that turns."""
    volumes = volumes_of(comm, mesh)
    d, rotation = volumes.dimension, Rotation(0.2)
    state = (1.0, *(0.0, 0.0, 0.4)[:d], 1.0)
    wall: BoundaryCondition = NoSlipWall() if turbulent else SlipWall(rotation.velocity)
    end = SupersonicInlet(state, 0.05, exact=True)
    boundaries = {name: end if name[0] == "z" else wall for name in volumes.patches}
    distance = np.minimum(*(np.abs(np.hypot(*volumes.centres[: volumes.cells, :2].T) - r) for r in (0.999, 2.001)))
    model = SpalartAllmaras() if turbulent else None
    flow = CompressibleFlow(
        fl.Context("cpu", comm=comm, threads=1, tuning=False), volumes, boundaries, GAS if turbulent else Gas(),
        CompressibleScheme(turbulence=model, cfl=0.3, **scheme), distance, rotation=rotation,
    )  # fmt: skip
    flow.start(lambda x: states(x)[:, : flow.components])
    if turbulent:
        flow.advance()
    flow.iterate(3)
    shared = volumes.shared
    return shared.cells.numbers[: shared.cells.owned], flow.states()


@pytest.mark.parametrize(
    ("dimension", "kind", "ranks", "loops", "turbulent"),
    [(2, "auto", 3, "faces", False), *(pytest.param(*case, marks=pytest.mark.long) for case in (
        (3, "auto", 2, "faces", True), (3, "auto", 3, "cells", True), (3, "dual", 3, "faces", False),
        (2, "dual", 2, "faces", False)))],
)  # fmt: skip
def test_states_of_one_rank(dimension: int, kind: str, ranks: int, loops: str, turbulent: bool) -> None:
    simplex = "triangle" if dimension == 2 else "tetra"
    mesh = dual(passage(dimension, simplex)) if kind == "dual" else passage(dimension)
    alone = run_threads(1, lambda comm: run(comm, mesh, turbulent=turbulent, loops=LOOPS[loops]))[0][1]
    found = np.full_like(alone, np.nan)
    for number, values in run_threads(ranks, lambda comm: run(comm, mesh, turbulent, loops=LOOPS[loops])):
        found[number] = values
    np.testing.assert_allclose(found, alone, rtol=1e-12, atol=1e-14)
    assert (np.ptp(found, axis=0) > 0.01).all()


@pytest.mark.parametrize("ranks", [2, 3])
def test_images_of_cells_of_other_ranks(ranks: int) -> None:
    """Partners of some images belong to other ranks, and only these wait for messages."""
    mesh = passage(2, "triangle")
    away = 0
    for one in run_threads(ranks, lambda comm: volumes_of(comm, mesh)):
        assert set(one.patches) == {"xmin", "xmax"}
        assert one.turned is not None
        apart = one.turned.partners >= one.owned
        inside = np.argsort(one.shared.element_order)[one.turned.elements] < one.shared.elements.inside
        np.testing.assert_array_equal(inside, ~apart)
        away += int(apart.sum())
    assert away >= 4


def converge(comm: Comm, mesh: MeshData) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Return numbers and states of the cells of this rank in a steady flow outward that turns, and the norms."""
    volumes = volumes_of(comm, mesh)
    sides: dict[str, BoundaryCondition] = {"xmin": TotalInlet(1.06, 1.0), "xmax": PressureOutlet(1.0)}
    flow = CompressibleFlow(
        fl.Context("cpu", comm=comm, threads=1, tuning=False), volumes, sides, Gas(constant=1.0),
        CompressibleScheme(limiter=None), rotation=Rotation(0.3),
    )  # fmt: skip
    flow.start(
        lambda x: np.column_stack([np.ones(len(x)), 0.4 * x / np.linalg.norm(x, axis=1)[:, None], np.ones(len(x))])
    )
    norms = SteadySteps(flow, Implicit(cfl=5.0, switch=1.0, sweeps=2)).solve(1e-11, 60)
    shared = volumes.shared
    number = shared.cells.numbers[: volumes.owned]
    return number, flow.states(), norms


@pytest.mark.long
def test_implicit_steps_find_the_steady_flow_of_one_rank() -> None:
    """Increments across ranks are those of the sweep before; the first residual and the last states are the same."""
    mesh = passage(2)
    _, alone, norms = converge(SelfComm(), mesh)
    found = np.full_like(alone, np.nan)
    for number, values, others in run_threads(3, lambda comm: converge(comm, mesh)):
        found[number] = values
        np.testing.assert_allclose(others[0], norms[0], rtol=1e-12)
        assert others[-1] <= 1e-11 * others[0]
    np.testing.assert_allclose(found, alone, rtol=0, atol=1e-9)
    assert (np.ptp(found, axis=0) > 0.01).all()


def test_every_rank_hears_of_sides_that_do_not_match() -> None:
    def work(comm: Comm, sectors: list[Sector]) -> None:
        volumes_of(comm, passage(2), sectors=sectors)

    with pytest.raises(MeshError, match="no patch 'ymx'; did you mean 'ymax'"):
        run_threads(2, lambda comm: work(comm, [Sector("ymin", "ymx")]))
    with pytest.raises(MeshError, match="have 6 and 7 faces"):
        run_threads(2, lambda comm: work(comm, [Sector("ymin", "xmax")]))
    with pytest.raises(MeshError, match="look at axis and centre"):
        run_threads(2, lambda comm: work(comm, [Sector("ymin", "ymax", centre=(0.5, 0.0))]))
