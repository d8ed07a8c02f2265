r"""A wing by sections: pressure along the chord at stations of the span, lift along the span, and places of shocks.

Pressure coefficients are compared with that of sonic speed,

.. math:: C_p^* = \frac{2}{\gamma M^2}
          \left[\left(\frac{2 + (\gamma - 1) M^2}{\gamma + 1}\right)^{\gamma / (\gamma - 1)} - 1\right]

(J. D. Anderson: *Fundamentals of Aerodynamics*, sec. 11.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import Gas
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.monitors.walls import cut_patches
from fluxloom.solvers.compressible.surface import PatchValues
from fluxloom_lab.problems.wing_planform import WingPlanform

__all__ = ["Section", "Strips", "critical_pressure", "section", "shock_places", "strips"]

Array = npt.NDArray[np.float64]

_SAME = 1e-7
"""Middles of faces that differ less along the span, as a part of it, are of one strip."""


@dataclass(frozen=True, eq=False)
class Section:
    """Values along the chord of a section, in the order of the upper side from the nose on, then of the lower one.

    Attributes
    ----------
    x : (n,)
        Over the chord, from the leading edge.
    z : (n,)
        Over the chord.
    cp : (n,)
        Pressure coefficient.
    upper : (n,)
        Whether on the upper side: where the normal into the wing points down.
    """

    x: Array
    z: Array
    cp: Array
    upper: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Strips:
    """Forces on strips of faces along the span.

    Attributes
    ----------
    y : (n,)
        Middle of each strip.
    force : (n, 3)
        Of pressure, less that far away, and friction, N.
    """

    y: Array
    force: Array


def critical_pressure(mach: float, gamma: float = 1.4) -> float:
    """Return the pressure coefficient of sonic speed, see the module.

    Raises
    ------
    SolverError
        If the Mach number is not positive.
    """
    if not (isfinite(mach) and mach > 0.0):
        raise SolverError(f"critical pressure: a Mach number above 0 is wanted, not {mach!r}")
    square = mach * mach
    ratio = ((2.0 + (gamma - 1.0) * square) / (gamma + 1.0)) ** (gamma / (gamma - 1.0))
    return 2.0 / (gamma * square) * (ratio - 1.0)


def section(
    mesh: MeshData, patches: Sequence[str], values: PatchValues, planform: WingPlanform, y: float,
    *, stream: FreeStream, gas: Gas,
) -> Section:  # fmt: skip
    """Return the pressure along the chord at a station: that of the faces which the plane there cuts.

    Parameters
    ----------
    mesh, patches
        Of the wing.
    values
        At its faces, from `fluxloom.solvers.compressible.surface.patch_values`.
    planform
        Where leading edge and chord are.
    y
        Station along the span.
    stream, gas
        Far away, for coefficients.

    Raises
    ------
    SolverError
        See `fluxloom.monitors.walls.cut_patches`.
    """
    cut = cut_patches(mesh, patches, values.places, 1, y)
    chord, start = float(planform.chord(y)), float(planform.leading(y))
    x, z = (cut.places[:, 0] - start) / chord, cut.places[:, 2] / chord
    cp = (values.pressure[cut.face] - stream.pressure) / stream.dynamic_pressure(gas)
    upper = values.normals[cut.face, 2] < 0.0
    order = np.lexsort((x, ~upper))
    return Section(x[order], z[order], cp[order], upper[order])


def shock_places(x: Array, cp: Array, critical: float) -> Array:
    """Return where the pressure rises through that of sonic speed along a side, ``(m,)``, by straight lines between.

    Parameters
    ----------
    x, cp : (n,)
        Along the side, in the order of ``x``.
    critical
        From `critical_pressure`.
    """
    rises = np.flatnonzero((cp[:-1] < critical) & (cp[1:] >= critical))
    part = (critical - cp[rises]) / (cp[rises + 1] - cp[rises])
    return x[rises] + part * (x[rises + 1] - x[rises])


def strips(values: PatchValues, pressure: float) -> Strips:
    """Return the forces on strips of faces whose middles have the same ``y``, from the root on.

    Parameters
    ----------
    values
        At the faces of a wing whose mesh has strips along the chord.
    pressure
        Far away, Pa.
    """
    across = values.places[:, 1]
    order = np.argsort(across, kind="stable")
    size = _SAME * max(float(np.ptp(across)), 1e-300)
    number = np.cumsum(np.concatenate([[0], np.diff(across[order]) > size])).astype(np.int64)
    force = ((values.pressure - pressure)[:, None] * values.normals + values.friction) * values.area[:, None]
    count = np.bincount(number)
    y = np.bincount(number, across[order]) / count
    sums = np.stack([np.bincount(number, weights=force[order, k]) for k in range(3)], axis=1)
    return Strips(y, sums.astype(np.float64))
