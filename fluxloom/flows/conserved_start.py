r"""Sums that a start from another mesh keeps: mass, momentum and energy of a gas, the level of water.

What is interpolated has other sums than the result, by what the meshes do not resolve. They are made the same over the
whole domain where it varies, by moving each value a part of the way to the largest or the least of those that it was
found of, the same part everywhere:

.. math:: q \leftarrow q + a (q_{max} - q) \quad \text{or} \quad q \leftarrow q - a (q - q_{min}), \quad 0 \le a \le 1

So uniform fields stay as they are, values between those around them, and densities and pressures above 0. One after
the other: of the density for the mean of :math:`\rho`, of velocities for that of :math:`\rho u`, of the pressure for
that of :math:`p / (\gamma - 1) + \rho |u|^2 / 2`. Where the whole way does not suffice, on meshes that are far too
coarse, the rest is a factor (to velocities, a velocity) that is the same everywhere. Sums are compared as means over
the volume, as those of two meshes of a domain with curved walls differ a little.

Of water it is the mean of the surface, over all that the water reaches. Its volume is that of the result but for what
the two meshes make of the bed: water at rest has to stay at its level.

References
----------
R. Bermejo, J. Conde: *A conservative quasi-monotone semi-Lagrangian scheme*. Monthly Weather Review 130 (2002) 423-430.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.gas import Gas
from fluxloom.run.start import Correction, Found, StartFields

__all__ = ["conserving", "level_water", "state_names", "water_of"]

Array = npt.NDArray[np.float64]
Fields = Mapping[str, Array]

_ROUNDING = 1e-14
"""Of a sum of magnitudes, what is no difference."""
_HALF = 0.5


def state_names(d: int) -> tuple[str, ...]:
    """Return the names of density, velocity and pressure in ``d`` dimensions."""
    return ("rho", *"uvw"[:d], "p")


def _mean(values: Array, volumes: Array) -> float:
    """Return the mean over the volume; sums do not depend on the order of the cells."""
    return math.fsum(values * volumes) / math.fsum(volumes)


def _moved(values: Array, bounds: tuple[Array, Array], weights: Array, wanted: float) -> tuple[Array, float]:
    """Return values moved within their bounds towards a sum ``sum w q``, and what the sum still lacks."""
    low, high = bounds
    lacking = wanted - math.fsum(weights * values)
    if abs(lacking) <= _ROUNDING * math.fsum(weights * np.abs(values)):
        return values, 0.0
    room = high - values if lacking > 0.0 else low - values
    most = math.fsum(weights * room)
    if not most:
        return values, lacking
    part = min(1.0, lacking / most)
    return values + part * room, lacking - part * most if part == 1.0 else 0.0


def conserving(gas: Gas, d: int) -> Correction:
    """Return what keeps mass, momentum and energy of a gas.

    Raises
    ------
    SolverError
        When called, if no pressure above 0 has the energy: the new mesh is far too coarse for the result.
    """
    names = state_names(d)

    def correct(found: Found) -> Fields:
        """Return the values with the means of mass, momentum and energy of the source, ``sum V U / sum V``."""
        theirs = found.source_volumes
        if theirs is None:
            return found.values
        out, ours, source = dict(found.values), found.volumes / math.fsum(found.volumes), found.source
        mass = _mean(source["rho"], theirs)
        out["rho"], lacking = _moved(out["rho"], found.bounds("rho"), ours, mass)
        out["rho"] = out["rho"] * (mass / (mass - lacking)) if lacking else out["rho"]
        for name in names[1:-1]:
            wanted = _mean(source["rho"] * source[name], theirs)
            out[name], lacking = _moved(out[name], found.bounds(name), ours * out["rho"], wanted)
            out[name] = out[name] + lacking / mass
        energy = _mean(source["p"] / (gas.gamma - 1.0) + _kinetic(source, names), theirs)
        inner = (energy - math.fsum(ours * _kinetic(out, names))) * (gas.gamma - 1.0)
        if not inner > 0.0:
            raise SolverError("the start has less energy than its motion alone: take a finer mesh")
        out["p"], lacking = _moved(out["p"], found.bounds("p"), ours, inner)
        out["p"] = out["p"] * (inner / (inner - lacking)) if lacking else out["p"]
        return out

    return correct


def _kinetic(fields: Fields, names: tuple[str, ...]) -> Array:
    return 0.5 * fields["rho"] * sum((fields[name] ** 2 for name in names[1:-1]), start=np.zeros(len(fields["rho"])))


def water_of(fields: StartFields) -> Fields:
    """Return the surface of the water and whether it reaches a cell: it does the dry ones beside wet ones too.

    There the surface is the mean of that of the wet cells across the faces, ``sum k_j e_j / sum k_j``, so that water at
    rest is level up to its shore, where the surface of a dry cell is its bed.
    """
    wet = fields.values["depth"] > 0.0
    surface = np.where(wet, fields.values["elevation"], 0.0)
    around = fields.search.links.cell_cells
    of = np.repeat(np.arange(wet.size), around.counts)
    count = np.bincount(of, wet[around.indices], minlength=wet.size)
    mean = np.bincount(of, surface[around.indices], minlength=wet.size) / np.maximum(count, 1.0)
    beside = ~wet & (count > 0.0)
    return {"surface": np.where(beside, mean, fields.values["elevation"]), "reach": (wet | beside).astype(np.float64)}


def level_water(found: Found) -> Fields:
    """Return the depth over the new bed, ``max(e - z_b, 0)``, with the mean of the surface ``e`` of the result.

    Fields are the ``depth``, those of `water_of`, and the velocity.
    """
    values, theirs, ours = found.values, found.source_volumes, found.volumes
    surface, reach = values["surface"], values["reach"] > _HALF
    if theirs is not None and reach.any():
        there = found.source["reach"] > _HALF
        level = _mean(found.source["surface"][there], theirs[there])
        low, high = found.bounds("surface")
        weights = ours[reach] / math.fsum(ours[reach])
        surface = surface.copy()
        surface[reach], _ = _moved(surface[reach], (low[reach], high[reach]), weights, level)
    return dict(values) | {"depth": np.where(reach, np.maximum(surface - values["bed"], 0.0), 0.0)}
