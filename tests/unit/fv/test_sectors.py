"""Sides of sectors: a sector is a piece of the whole annulus, and nothing is lost through them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import MeshError
from fluxloom.fv.compressible.boundary import NoSlipWall, SlipWall, SupersonicInlet
from fluxloom.fv.compressible.gas import Gas, Sutherland
from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras
from fluxloom.fv.geometry.cell_faces import Rotation
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.sectors import Sector
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.mesh import MeshData, box2d, box3d
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme

PARTS = 5
GAS = Gas(constant=1.0, viscosity=Sutherland(0.02, 1.0, 0.5))
LONG = pytest.mark.long


def annulus(parts: int, dimension: int = 3) -> MeshData:
    """Return parts of an annulus, its nodes moved alike in each: ``x`` is the radius, ``y`` the part of the angle."""
    size = (1.0, float(parts), 0.7)
    mesh = box3d(3, 4 * parts, 2, size) if dimension == 3 else box2d(3, 4 * parts, size[:2])
    r, t = 1.0 + mesh.points[:, 0], mesh.points[:, 1]
    wave = np.sin(2.0 * np.pi * t) * (r - 1.0) * (2.0 - r)
    t = 2.0 * np.pi / PARTS * (t + 0.03 * wave + 0.1 * (r - 1.0) ** 2)
    r = r + 0.05 * wave
    points = mesh.points.copy()
    points[:, 0], points[:, 1] = r * np.cos(t), r * np.sin(t)
    return MeshData(points, mesh.cells, mesh.patches, mesh.source)


def states(places: np.ndarray, nut: float = 0.05) -> np.ndarray:
    """Return a flow that is the same in each part, with velocities along the radius, around and along the axis."""
    d = places.shape[1]
    r, t = np.hypot(places[:, 0], places[:, 1]), np.arctan2(places[:, 1], places[:, 0])
    wave = np.cos(PARTS * t)
    outward, around = 0.1 * wave * r, 0.3 * r + 0.05 * np.sin(PARTS * t)
    u = outward * np.cos(t) - around * np.sin(t), outward * np.sin(t) + around * np.cos(t)
    along = [0.4 + 0.1 * r * wave] if d == 3 else []
    return np.stack([1.0 + 0.1 * wave, *u, *along, 1.0 + 0.05 * r * wave, nut * (1.5 + wave)], axis=1)


def flow_of(volumes: ControlVolumes, device: str = "cpu", turning: bool = False, **scheme: Any) -> CompressibleFlow:
    """Return a turbulent flow between cylinders."""
    d = volumes.dimension
    state = (1.0, *(0.0, 0.0, 0.4)[:d], 1.0)
    rotation = Rotation(0.2) if turning else None
    walls = {"xmin": NoSlipWall(), "xmax": NoSlipWall(), "zmin": SupersonicInlet(state, 0.05, exact=True),
             "zmax": SupersonicInlet(state, 0.05, exact=True)}  # fmt: skip
    boundaries = {name: walls[name] for name in volumes.patches}
    distance = np.minimum(*(np.abs(np.hypot(*volumes.centres[: volumes.cells, :2].T) - r) for r in (0.999, 2.001)))
    return CompressibleFlow(
        fl.Context(device, threads=1, tuning=False), volumes, boundaries, GAS,
        CompressibleScheme(turbulence=SpalartAllmaras(), cfl=0.3, **scheme), distance, rotation=rotation,
    )  # fmt: skip


def sector(parts: int = 1, dimension: int = 3) -> ControlVolumes:
    """Return the control volumes of some parts, joined to an annulus."""
    return control_volumes(annulus(parts, dimension), sectors=[Sector("ymin", "ymax")])


def ring(dimension: int = 3) -> ControlVolumes:
    """Return the control volumes of the whole annulus, its ends one and the same nodes."""
    mesh = annulus(PARTS, dimension)
    wide, long = 4, 4 * PARTS + 1
    number = np.arange(mesh.n_points)
    row = number // wide % long
    number = np.where(row == long - 1, number - wide * (long - 1), number).astype(np.int32)
    cells = {kind: number[block] for kind, block in mesh.cells.items()}
    patches = {
        name: type(patch)({kind: number[block] for kind, block in patch.blocks.items()})
        for name, patch in mesh.patches.items()
        if name not in ("ymin", "ymax")
    }
    return control_volumes(MeshData(mesh.points, cells, patches, mesh.source))


def residual(flow: CompressibleFlow) -> np.ndarray:
    """Return ``R`` of the cells, its vectors along the radius, around and along the axis."""
    flow.before()
    found = flow.res.read()[: flow.volumes.cells].copy()
    t = np.arctan2(*flow.volumes.centres[: flow.volumes.cells, 1::-1].T)
    x, y = found[:, 1].copy(), found[:, 2].copy()
    found[:, 1], found[:, 2] = x * np.cos(t) + y * np.sin(t), y * np.cos(t) - x * np.sin(t)
    return found


def in_part(volumes: ControlVolumes, part: int) -> np.ndarray:
    """Return the cells of a part, in the order of those of the first one."""
    turned = np.arctan2(*volumes.centres[: volumes.cells, 1::-1].T) % (2.0 * np.pi)
    return np.flatnonzero((turned // (2.0 * np.pi / PARTS)).astype(int) == part)


@pytest.mark.parametrize(
    ("dimension", "order", "loops"),
    [(2, 2, "faces"),
     *(pytest.param(*case, marks=LONG) for case in ((3, 2, "faces"), (3, 2, "cells"), (3, 1, "cells")))],
)  # fmt: skip
def test_a_sector_is_a_part_of_the_annulus(dimension: int, order: int, loops: str) -> None:
    whole, part = ring(dimension), sector(1, dimension)
    found = []
    for volumes in (whole, part):
        flow = flow_of(volumes, order=order, limiter=None, loops=loops, turning=True)
        flow.start(states)
        found.append(residual(flow))
    size = np.abs(found[1]).max(axis=0)
    assert (size > 1e-4).all()
    for k in range(PARTS):
        rest = found[0][in_part(whole, k)] - found[1]
        assert (np.abs(rest).max(axis=0) < 3e-13 * size.max()).all(), k


@LONG
@pytest.mark.parametrize("loops", ["faces", "cells"])
def test_nothing_is_lost_through_the_sides(loops: str) -> None:
    """What all cells lose leaves through the boundary: mass, momentum along the axis, energy, the model's variable."""
    flow = flow_of(sector(), turning=True, loops=loops)
    flow.start(states)
    flow.before()
    cv, found = flow.volumes, flow.res.read()
    face = cv.outer - cv.cells + cv.interior
    out = cv.area[face] @ flow.outflow.read()[cv.outer, : flow.components]
    rest = np.abs(found[: cv.cells].sum(axis=0) + out)[[0, 3, 4]]
    assert (rest < 1e-13 * np.abs(found).sum(axis=0)[[0, 3, 4]]).all()
    assert (np.abs(found[: cv.cells]).max(axis=0) > 1e-4).all()


@LONG
@pytest.mark.parametrize("dimension", [3, 2])
def test_flow_along_the_axis_stays(dimension: int) -> None:
    """Uniform flow along the axis, in two dimensions gas at rest, between walls in a sector that turns."""
    volumes, rotation = sector(1, dimension), Rotation(0.3)
    state = np.array([1.2, *(0.0, 0.0, 0.5)[:dimension], 0.9])
    wall, ends = SlipWall(rotation.velocity), SupersonicInlet(tuple(state), exact=True)
    boundaries = {name: ends if name[0] == "z" else wall for name in volumes.patches}
    flow = CompressibleFlow(
        fl.Context("cpu", threads=1, tuning=False), volumes, boundaries, Gas(), CompressibleScheme(), rotation=rotation
    )
    flow.start(state)
    if dimension == 3:
        flow.iterate(3)
        np.testing.assert_allclose(flow.states(), np.broadcast_to(state, flow.states().shape), rtol=0, atol=3e-14)
    else:
        flow.before()
        mass = np.abs(flow.res.read()[: volumes.cells, 0]).max()
        assert mass < 1e-12, "walls on chords of a circle that turns push gas, but only what their faces sweep"


def test_images_are_turned_cells() -> None:
    volumes = sector()
    turned = volumes.turned
    assert turned is not None
    assert set(volumes.patches) == {"xmin", "xmax", "zmin", "zmax"}
    r = np.hypot(*volumes.centres[:, :2].T)
    np.testing.assert_allclose(r[turned.elements], r[turned.partners], rtol=1e-14)
    first, second = turned.rotations
    np.testing.assert_allclose(first @ second, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(first[0, 0], np.cos(2.0 * np.pi / PARTS), rtol=1e-12)
    assert volumes.spacing.min() > 0.0


@pytest.mark.parametrize(
    ("sectors", "message"),
    [
        ([Sector("ymin", "ymx")], "no patch 'ymx'; did you mean 'ymax'"),
        ([Sector("ymin", "ymin")], "the patch 'ymin' is named twice"),
        ([Sector("ymin", "zmax")], "have 6 and 12 faces"),
        ([Sector("ymin", "ymax", centre=(0.5, 0.0, 0.0))], "look at axis and centre"),
        ([Sector("ymin", "ymax", axis=(1.0, 0.0, 0.0))], "look at axis and centre"),
    ],
)
def test_what_does_not_match(sectors: list[Sector], message: str) -> None:
    with pytest.raises(MeshError, match=message):
        control_volumes(annulus(1), sectors=sectors)


def test_an_axis_needs_a_direction() -> None:
    with pytest.raises(MeshError, match="an axis with a direction"):
        Sector("a", "b", axis=(0.0, 0.0, 0.0))
    with pytest.raises(MeshError, match="an axis of 3 numbers"):
        Sector("a", "b", axis=(0.0, 1.0))
