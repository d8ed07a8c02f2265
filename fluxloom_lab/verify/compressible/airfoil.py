"""Flow round the airfoil NACA 0012 without friction, on rings of quads."""

from __future__ import annotations

from collections.abc import Iterator

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.fv.compressible.boundary import FarField, SlipWall
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.gradients.limiters import Venkatakrishnan
from fluxloom.mesh.generate.naca import naca_mesh
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.implicit import SteadySteps
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom.solvers.compressible.surface import AerodynamicReference, Coefficients, SurfaceForces
from fluxloom_lab.verify.base import Check

__all__ = ["airfoil", "airfoil_checks"]

_SUBSONIC = "Vassberg and Jameson 2010, limit of their meshes"
_FINER = "Vassberg and Jameson 2010, 256 x 256 quads"
_TRANSONIC = "spread of AGARD-AR-211, 1985"
_REACH = 150.0
"""Radius of the mesh in chords, that of Vassberg and Jameson."""


def airfoil(context: Context, mach: float, around: int, drop: float = 1e-8, most: int = 1500) -> Coefficients:
    """Return drag and lift at an angle of 1.25 degrees, with ``around`` quads round the airfoil and half as many rings.

    Parameters
    ----------
    context
        Where it runs.
    mach, around
        Of the flow and the mesh.
    drop, most
        Part of the first residual at which steps end, and how many there are at most.

    Raises
    ------
    SolverError
        If the residual has not fallen so far.
    """
    gas = Gas(constant=1.0)
    stream = FreeStream.at_angles(mach, 1.0, 1.0, 1.25, dimension=2)
    volumes = control_volumes(naca_mesh("0012", around, around // 2, _REACH))
    boundaries = {"airfoil": SlipWall(), "far_field": FarField(stream)}
    # without shocks nothing has to be limited
    scheme = CompressibleScheme(limiter=None if mach < 0.6 else Venkatakrishnan())
    flow = CompressibleFlow(context, volumes, boundaries, gas, scheme)
    flow.start(stream.state(gas, 2))
    norms = SteadySteps(flow).solve(drop, most)
    if norms[-1] > drop * norms[0]:
        what = f"an airfoil at Mach {mach:g}: the residual is {norms[-1] / norms[0]:.1e} of the first one"
        raise SolverError(f"{what} after {most} steps, {drop:g} is wanted")
    forces = SurfaceForces(flow, {"airfoil": ["airfoil"]}, pressure=1.0)
    return AerodynamicReference(stream, gas).of(forces.now()["airfoil"])


def airfoil_checks(context: Context, full: bool) -> Iterator[Check]:
    """Yield lift and drag; on a mesh so coarse the lift is some per cent low."""
    del full
    found = airfoil(context, 0.5, 128)
    what = "NACA 0012 at Mach 0.5, 128 x 64 quads"
    yield Check(f"{what}: lift", found.lift, 0.179784, 0.025, _SUBSONIC)
    yield Check(f"{what}: drag", found.drag, 0.0, 1e-3, "none without friction and shocks")
    found = airfoil(context, 0.8, 128, 1e-6)
    what = "NACA 0012 at Mach 0.8, 128 x 64 quads"
    yield Check(f"{what}: lift", found.lift, 0.359073, 0.05, _FINER)
    yield Check(f"{what}: drag", found.drag, 0.0225, 0.05, _TRANSONIC)
