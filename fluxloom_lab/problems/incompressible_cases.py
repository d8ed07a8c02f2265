"""Small flows with known answers: decaying vortices, shear, a fluid without viscosity, and the operators themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.context import Context
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.incompressible.boundary import NoSlip
from fluxloom.fv.incompressible.operators import Operators
from fluxloom.fv.incompressible.projection_schemes import ProjectionScheme
from fluxloom.linalg.status import Stop
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom_lab.exact.taylor_green import plane_vortices

__all__ = ["decaying_vortices", "energy_drift", "identities", "shear"]

Array = npt.NDArray[np.float64]

_LENGTH = 2.0 * np.pi
_TIGHT = Stop(rtol=1e-12)
_BOTH = (("xmin", "xmax"), ("ymin", "ymax"))


def decaying_vortices(context: Context, n: int, scheme: ProjectionScheme) -> float:
    """Return the root mean square error at time 1/2 of Taylor's vortices, with ``2 n`` steps on ``n x n`` cells."""
    nu, steps = 0.1, 2 * n
    volumes = control_volumes(box2d(n, n, (_LENGTH, _LENGTH)), _BOTH)
    flow = Incompressible(context, volumes, nu, stop=_TIGHT, scheme=scheme)
    flow.initialise(plane_vortices)
    for _ in range(steps):
        flow.step(0.5 / steps)
    wanted = np.exp(-nu) * plane_vortices(volumes.centres[: volumes.cells])
    return float(np.sqrt(((flow.velocity() - wanted) ** 2).sum(axis=1).mean()))


def shear(context: Context, steps: int, scheme: ProjectionScheme) -> float:
    """Return the largest error in time of ``u = sin y``, which decays as ``exp(-nu t (2 - 2 cos h) / h^2)``."""
    n, nu, time = 8, 1.0, 0.8
    volumes = control_volumes(box2d(2, n, (1.0, _LENGTH)), _BOTH)
    start = np.stack([np.sin(volumes.centres[:, 1]), np.zeros(2 * n)], axis=1)
    flow = Incompressible(context, volumes, nu, stop=_TIGHT, scheme=scheme)
    flow.initialise(lambda _places: start)
    for _ in range(steps):
        flow.step(time / steps)
    h = _LENGTH / n
    wanted = np.exp(-nu * time * (2.0 - 2.0 * np.cos(h)) / h**2) * start
    return float(np.abs(flow.velocity() - wanted).max())


def energy_drift(context: Context, steps: int, consistent: bool, n: int = 12) -> tuple[float, float]:
    """Return what part of kinetic energy is lost in a time, and of momentum, without viscosity on ``2 n^2`` triangles.

    The first steps are left out, in which the pressure takes from the cells what the faces have lost already.
    """
    mesh = box2d(n, n, (_LENGTH, _LENGTH), "triangle", perturb=0.2, seed=3)
    flow = Incompressible(context, control_volumes(mesh, _BOTH), 0.0, stop=_TIGHT, consistent=consistent)
    flow.initialise(lambda x: plane_vortices(x) + np.array([0.4, -0.2]))
    for _ in range(40):
        flow.step(0.5 / steps)
    start = flow.state()
    for _ in range(steps):
        flow.step(0.5 / steps)
    end = flow.state()
    lost = np.abs(end.momentum - start.momentum).max() / np.abs(start.momentum).max()
    return abs(end.kinetic_energy / start.kinetic_energy - 1.0), float(lost)


def identities(context: Context) -> Iterator[tuple[str, float]]:
    """Yield names of identities of the symmetric form, and how far from them it is, relative to the largest entries."""
    plane = control_volumes(box2d(9, 8, (_LENGTH, _LENGTH), "triangle", perturb=0.3, seed=1), _BOTH)
    solid = control_volumes(box3d(4, 4, 3, kind="tetra", perturb=0.2, seed=1))
    for volumes, name in ((plane, "triangles, periodic"), (solid, "tetrahedra between walls")):
        yield from ((f"{what} ({name})", value) for what, value in _identities(context, volumes))


def _identities(context: Context, volumes: ControlVolumes) -> Iterator[tuple[str, float]]:
    walls, stop = dict.fromkeys(volumes.patches, NoSlip()), Stop(rtol=1e-14)
    flow = Incompressible(context, volumes, 0.1, walls, stop=stop, consistent=False)
    random = np.random.default_rng(5).normal(size=(volumes.cells, volumes.dimension))
    flow.initialise(lambda _places: random)
    ops, cells = Operators(volumes), slice(0, volumes.cells)
    convection = ops.from_entries(ops.convection_map @ flow.us.read())[:, cells]
    yield "convection is skew-symmetric, |C + C^T|", _largest(convection + convection.T) / _largest(convection)
    diffusion = ops.from_entries(ops.diffusion_map @ flow.nus.read())[:, cells]
    yield "diffusion is symmetric, |D - D^T|", _largest(diffusion - diffusion.T) / _largest(diffusion)
    gradients = flow.matrices.pressure_gradient()
    worst = 0.0
    for k in range(volumes.dimension):
        gradient = gradients.matrix(volumes.cells, k).multiply(volumes.volumes[:, None]).tocsr()
        divergence = ops.cell_divergence(k)[:, cells]
        worst = max(worst, _largest(gradient + divergence.T) / _largest(divergence))
    yield "the gradient is the transpose of the divergence, |Omega G + M^T|", worst


def _largest(matrix: object) -> float:
    return float(abs(matrix).max())  # pyright: ignore[reportArgumentType]
