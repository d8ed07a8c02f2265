"""Forces on an airfoil along many iterations: those of a device are those of one thread of the processor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.context import Context
from fluxloom.fv.compressible.boundary import FarField, NoSlipWall, SlipWall
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import ConstantViscosity, Gas
from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.time_schemes import RK5
from fluxloom.mesh.generate.naca import naca_mesh
from fluxloom.mesh.ranks.wall_distance import wall_distance, wall_faces
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom.solvers.compressible.surface import AerodynamicReference, SurfaceForces
from fluxloom_lab.verify.base import Check

__all__ = ["device_checks", "force_history"]

Array = npt.NDArray[np.float64]

_ITERATIONS = 1000
_AROUND, _RINGS, _REACH = 128, 32, 20.0
_MACH = 0.8
_REYNOLDS, _RATIO = 1e4, 3.0
_SOURCE = "the same iterations on one thread of the processor"


def force_history(context: Context, turbulent: bool, iterations: int = _ITERATIONS) -> Array:
    """Return drag and lift after each explicit step from uniform flow, ``(iterations, 2)``.

    NACA 0012 at Mach 0.8 and 1.25 degrees, second order with Venkatakrishnan's limiter, five stages with local steps.

    Parameters
    ----------
    turbulent
        With friction, and the model of Spalart and Allmaras, at a Reynolds number of 1e4.
    """
    stream = FreeStream.at_angles(_MACH, 1.0, 1.0, 1.25, dimension=2)
    gas = Gas(constant=1.0)
    if turbulent:
        mu = stream.density(gas) * stream.speed(gas) / _REYNOLDS
        gas = Gas(constant=1.0, viscosity=ConstantViscosity(mu))
    mesh = naca_mesh("0012", _AROUND, _RINGS, _REACH)
    volumes = control_volumes(mesh)
    nut = stream.turbulence(gas, _RATIO) if turbulent else 0.0
    boundaries = {"airfoil": NoSlipWall() if turbulent else SlipWall(), "far_field": FarField(stream, nut)}
    model = SpalartAllmaras() if turbulent else None
    scheme = CompressibleScheme(time=RK5(), cfl=1.5, turbulence=model)
    distance = wall_distance(volumes.centres[: volumes.cells], *wall_faces(mesh, ["airfoil"])) if turbulent else None
    flow = CompressibleFlow(context, volumes, boundaries, gas, scheme, distance)
    start = stream.state(gas, 2)
    flow.start(np.append(start, nut) if turbulent else start)
    forces = SurfaceForces(flow, {"airfoil": ["airfoil"]}, pressure=1.0)
    reference, found = AerodynamicReference(stream, gas), np.zeros((iterations, 2))
    for k in range(iterations):
        flow.iterate()
        coefficients = reference.of(forces.now()["airfoil"])
        found[k] = coefficients.drag, coefficients.lift
    flow.residuals()
    return found


def device_checks(context: Context, full: bool) -> Iterator[Check]:
    """Yield the largest differences of drag and lift over the largest lift."""
    del full
    for turbulent in (False, True):
        here = force_history(context, turbulent)
        there = force_history(Context("cpu", threads=1), turbulent)
        difference = float(np.abs(here - there).max() / np.abs(there).max())
        model = "Spalart-Allmaras" if turbulent else "Euler"
        what = f"{_ITERATIONS} iterations, {model}: difference of the forces, {context.device.name} against one thread"
        yield Check(what, difference, 0.0, 1e-12, _SOURCE)
