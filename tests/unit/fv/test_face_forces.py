"""Forces through the faces: their mean in the cells makes the gradient of the slope; the ways between cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes, Family
from fluxloom.fv.incompressible.boundary import FlowConditions, Outflow, Symmetry
from fluxloom.fv.incompressible.face_forces import (
    accelerate_cells,
    accelerate_faces,
    face_buoyancy,
    face_levers,
    face_to_cells,
    outward_areas,
    source_of_faces,
)
from fluxloom.fv.incompressible.matrices import FlowMatrices
from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.ranks.distribute import distribute_mesh
from fluxloom.mesh.ranks.slices import as_slice
from fluxloom.solvers.flow_spaces import FlowSpaces
from fluxloom_lab.problems.box_volumes import periodic_box_volumes

MESHES = {
    "quads": (box2d(5, 6, perturb=0.2), []),
    "triangles": (box2d(5, 4, kind="triangle", perturb=0.1), [("xmin", "xmax")]),
    "hexahedra": (box3d(4, 3, 3, perturb=0.2), [("ymin", "ymax")]),
    "tetrahedra": (box3d(2, 3, 2, kind="tetra"), []),
    "one layer": (box2d(4, 1), [("ymin", "ymax")]),
}


def matrices(volumes: ControlVolumes) -> FlowMatrices:
    """Return those of a flow with all kinds of boundaries."""
    kinds = np.resize(np.array([-1, 0, 1], dtype=np.int32), volumes.elements - volumes.cells)
    given = np.zeros((kinds.size, volumes.dimension))
    varies = np.zeros(kinds.size, dtype=bool)
    return FlowMatrices(volumes, FlowConditions((Outflow(), Symmetry()), kinds, given, varies))


@pytest.mark.parametrize("name", MESHES)
def test_mean_of_the_slope_is_the_gradient(name: str) -> None:
    """``R G_s = G``, component by component, for any values of the cells."""
    volumes = control_volumes(*MESHES[name])
    found = matrices(volumes)
    phi = np.random.default_rng(1).normal(size=volumes.cells)
    slope = found.pressure_slope().matrix(volumes.cells) @ phi
    for k in range(volumes.dimension):
        mean = face_to_cells(found).matrix(len(volumes.faces), k) @ slope
        np.testing.assert_allclose(mean, found.pressure_gradient().matrix(volumes.cells, k) @ phi, atol=1e-11)


@pytest.mark.parametrize("name", ["quads", "triangles", "hexahedra", "tetrahedra"])
def test_levers_of_a_linear_scalar(name: str) -> None:
    """Inside they make the slope of ``(a . x)^2 / 2`` of the scalar ``a . x`` and the lift ``a``; none at walls."""
    volumes = control_volumes(*MESHES[name])
    found, d = matrices(volumes), volumes.dimension
    a = np.array([0.3, -1.2, 0.7])[:d]
    theta = volumes.centres @ a
    force = face_levers(found, a).matrix(volumes.elements) @ theta
    own, other = volumes.faces[: volumes.interior].T
    plain = np.setdiff1d(np.arange(volumes.interior), volumes.wrapped.faces)
    wanted = (0.5 * theta[other] ** 2 - 0.5 * theta[own] ** 2) / volumes.spacing[: volumes.interior]
    np.testing.assert_allclose(force[plain], wanted[plain], atol=1e-12)
    outer, behind = slice(volumes.interior, None), volumes.faces[volumes.interior :, 0]
    at_outflow = theta[behind] * (volumes.ways[outer] @ a) / volumes.spacing[outer]
    np.testing.assert_allclose(force[outer], np.where(found.conditions.open, at_outflow, 0.0), atol=1e-12)
    assert np.abs(at_outflow).max() > 0.1


def test_ways() -> None:
    """Across periodic patches they lead to the image; along the normal they are as long as the spacing."""
    for mesh, periodic in MESHES.values():
        volumes = control_volumes(mesh, periodic)
        along = np.einsum("ij,ij->i", volumes.ways, volumes.normals)
        np.testing.assert_allclose(along, volumes.spacing, rtol=1e-12)
    box = periodic_box_volumes((3, 4, 5), (1.0, 2.0, 3.0))
    np.testing.assert_allclose(np.abs(box.ways), np.repeat(np.diag([0.2, 0.5, 1.0]), 60, axis=0), atol=1e-12)
    assert box.wrapped.faces.size == 12 + 15 + 20


def test_ways_on_ranks() -> None:
    mesh, periodic = MESHES["triangles"]
    whole = control_volumes(mesh, periodic)

    def table(volumes: ControlVolumes) -> np.ndarray:
        rows = np.column_stack([volumes.ways, volumes.areas])
        return np.round(rows[np.lexsort(np.round(rows, 9).T)], 9) + 0.0

    def part(comm: Comm) -> np.ndarray:
        divided = distribute_mesh(as_slice(comm, mesh), comm, method="rcb", maps=FLOW_MAPS)
        return table(shared_volumes(divided, periodic))

    every = {tuple(row) for row in table(whole)}
    found = [{tuple(row) for row in rows} for rows in run_threads(2, part)]
    assert set.union(*found) == every


def loops(device: str) -> dict[str, np.ndarray]:
    """Return what the kernels make of random numbers."""
    volumes = control_volumes(box2d(30, 33, perturb=0.2), [("xmin", "xmax")])
    ctx, found = fl.Context(device, tuning=False, threads=1), matrices(volumes)
    spaces, random = FlowSpaces(ctx, volumes), np.random.default_rng(2)
    theta = spaces.elements.dat(random.normal(size=(volumes.elements, 1)), "theta")
    us, force = (spaces.faces.dat(random.normal(size=len(volumes.faces)), name) for name in ("us", "force"))
    b, u = ctx.dat(spaces.cells.set, name="b"), ctx.dat(spaces.elements.set, name="u", shape=(2,))
    dt = ctx.scalar(0.3, "dt")
    levers = spaces.faces.rows(face_levers(found, np.array([0.4, -1.0])), spaces.elements, "levers")
    means = spaces.elements.rows(face_to_cells(found), spaces.faces, "means")
    out = spaces.cells.rows(outward_areas(found), spaces.faces, "out")
    for first in (1, 0):
        fl.Loop(face_buoyancy, spaces.faces.set, levers.entries, theta[levers.pattern], force, reference=0.2,
                first=first)()  # fmt: skip
    fl.Loop(source_of_faces, spaces.cells.set, out.entries, force[out.pattern], dt, b)()
    fl.Loop(accelerate_faces, spaces.faces.set, force, dt, us)()
    fl.Loop(accelerate_cells, spaces.elements.set, means.entries, force[means.pattern], dt, u, d=2)()
    lever: Family = face_levers(found, np.array([0.4, -1.0]))
    expected: Any = 2.0 * (lever.matrix(volumes.elements) @ (theta.read()[:, 0] - 0.2))
    np.testing.assert_allclose(force.read(), expected, atol=1e-12)
    return {dat.name: dat.read() for dat in (force, b, us, u)}


def test_devices_agree() -> None:
    wanted = loops("reference")
    for name, values in loops("cpu").items():
        assert np.abs(values).max() > 0.01
        np.testing.assert_allclose(values, wanted[name], rtol=1e-12, atol=1e-12, err_msg=name)
