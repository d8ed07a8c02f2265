"""Plane Poiseuille flow and that in a pipe on tetrahedra of Gmsh: orders of velocity, force and pressure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.incompressible.boundary import Boundary, Inflow, NoSlip, Outflow, Symmetry
from fluxloom.linalg.status import Stop
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.gmsh_mesh import GmshBox, gmsh_mesh
from fluxloom.mesh.generate.gmsh_session import gmsh_arrays, gmsh_session
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.forces import Forces

NU, LENGTH = 0.1, 2.0
SIZES = (0.2, 0.14, 0.1)


def pipe(size: float) -> MeshData:
    """Return a pipe of radius 0.5 along x."""
    with gmsh_session("pipe") as gmsh:
        model = gmsh.model
        model.occ.addCylinder(0.0, 0.0, 0.0, LENGTH, 0.0, 0.0, 0.5)
        model.occ.synchronize()
        for which in ("Min", "Max"):
            gmsh.option.setNumber(f"Mesh.MeshSize{which}", size)
        patches: dict[str, list[int]] = {}
        for _, tag in model.getBoundary(model.getEntities(3), oriented=False):
            x = model.occ.getCenterOfMass(2, tag)[0]
            name = "xmin" if x < 1e-6 else "xmax" if x > LENGTH - 1e-6 else "wall"
            patches.setdefault(name, []).append(tag)
        model.mesh.generate(3)
        return gmsh_arrays(gmsh, 3, patches, "pipe")


def box(size: float) -> MeshData:
    return gmsh_mesh(GmshBox(size=size, x=(0.0, LENGTH), y=(0.0, 1.0), z=(0.0, 1.0)))


def errors(mesh: MeshData) -> list[float]:
    """Return those of the velocity (L2), and of the force of the walls and the fall of the pressure, as parts.

    A pipe is judged by the area and the flux of its mesh.
    """
    cv = control_volumes(mesh)
    entry = np.arange(cv.patches["xmin"].start, cv.patches["xmin"].stop)
    area = cv.area[entry - cv.cells + cv.interior]
    walls = sorted(set(cv.patches) & {"wall", "ymin", "ymax"})
    radius = np.sqrt(area.sum() / np.pi)

    def profile(x: np.ndarray) -> np.ndarray:
        found = np.zeros_like(x)
        plane = 4.0 * x[:, 1] * (1.0 - x[:, 1])
        found[:, 0] = plane if "ymin" in walls else 1.0 - (x[:, 1] ** 2 + x[:, 2] ** 2) / radius**2
        return found

    flux = float(profile(cv.centres[entry])[:, 0] @ area)
    slope = 8.0 * NU if "ymin" in walls else 8.0 * np.pi * NU * flux / area.sum() ** 2
    sides: dict[str, Boundary] = {name: Symmetry() for name in cv.patches if name[0] == "z"}
    sides |= {"xmin": Inflow(profile), "xmax": Outflow()} | dict.fromkeys(walls, NoSlip())
    context = fl.Context("cpu", threads=1, tuning=False)
    flow = Incompressible(context, cv, NU, sides, stop=Stop(rtol=1e-5, iterations=3000))
    flow.seek_steady()
    flow.initialise(profile)
    wall, start, now = Forces(flow, walls), Forces(flow, "xmin"), np.zeros(2)
    while flow.time < 2.0:
        for _ in range(50):
            flow.step(flow.stable_step(0.35, 0.4))
        last, now = now, np.array([wall.now().total[0] / LENGTH, -start.now().pressure[0] / LENGTH])
        if np.abs(now - last).max() < 5e-6 * np.abs(now).max():
            break
    wrong = flow.velocity() - profile(cv.centres[: cv.cells])
    far = float(np.sqrt((cv.volumes[:, None] * wrong**2).sum() / cv.volumes.sum()))
    return [far, *np.abs(now / (slope * area.sum()) - 1.0).tolist()]


@pytest.mark.long
@pytest.mark.parametrize("shape", [box, pipe])
def test_orders(shape: Callable[[float], MeshData]) -> None:
    """Second on three meshes; force and fall of the pressure within 2 % with size 0.1."""
    pytest.importorskip("gmsh")
    found = np.array([errors(shape(size)) for size in SIZES])
    orders = np.polyfit(np.log(SIZES), np.log(found), 1)[0]
    assert orders[0] > 1.8
    assert (orders[1:] > 1.5).all()
    assert found[-1, 1:].max() < 0.02
