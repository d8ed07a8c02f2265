r"""What a compressible flow does on patches: values in their faces, forces, moments and coefficients.

With the fluxes ``f`` of momentum and ``e`` of energy through a wall, its unit normal ``n`` into the body and its
velocity ``u``

.. math:: p = f \cdot n, \quad \tau = f - p n, \quad y^+ = y \sqrt{\rho |\tau|} / \mu, \quad q = e - f \cdot u

with density and viscosity at the wall, and the distance ``y`` along the normal of the centroid of the cell behind.

.. math:: F = \sum (f - p_\infty n) A, \quad M = \sum (x - x_0) \times (f - p_\infty n) A

over the boundary faces with the outward normal ``n`` (into the body), the flux of momentum ``f`` through them and their
centres ``x``. At a wall ``f`` is the pressure along the normal, and friction along the face. It is the flux of the
discrete equations: the force on all patches is what the momentum of the gas changes by, to round-off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan

import numpy as np
import numpy.typing as npt

from fluxloom.comm.rows import to_first
from fluxloom.core.access import Const, Inc, Read
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.boundary import NoSlipWall
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.given import moves
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import fabs, pow, zeros
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.flow_spaces import patch_elements, patch_numbers

__all__ = ["AerodynamicReference", "Coefficients", "PatchValues", "SurfaceForce", "SurfaceForces", "patch_values"]

Array = npt.NDArray[np.float64]

_TIGHT = 1e-12
"""Of density times speed of sound: mass that passes a face and is rounding."""


@dataclass(frozen=True, eq=False)
class PatchValues:
    """Values at the ``n`` faces of some patches, those of all ranks; on ranks other than the first there are none.

    Attributes
    ----------
    places, normals : (n, d)
        Centres, and unit normals into the body.
    area, pressure : (n,)
        Of the face, and the normal part of the flux of momentum.
    friction : (n, d)
        The rest of that flux: of the gas on the wall.
    y_plus : (n,)
        Of the cells behind; NaN for a gas without viscosity.
    temperature, heat, conductivity : (n,)
        Temperature at the face; heat that flows into a wall, W/m^2, NaN where gas passes the face; and the conductivity
        of the gas. Empty: not known.
    moves : (n,)
        1 at the faces of walls that move, else 0.
    """

    places: Array
    normals: Array
    area: Array
    pressure: Array
    friction: Array
    y_plus: Array
    temperature: Array = field(default_factory=lambda: np.zeros(0))
    heat: Array = field(default_factory=lambda: np.zeros(0))
    conductivity: Array = field(default_factory=lambda: np.zeros(0))
    moves: Array = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return len(self.area)

    @property
    def columns(self) -> dict[str, Array]:
        """What is known of the faces, ``(n,)`` each, by name; see `fluxloom.run.measures.Surface.faces`."""
        axes, viscous = "xyz"[: self.places.shape[1]], np.isfinite(self.y_plus).any()
        found = {name: self.places[:, k] for k, name in enumerate(axes)}
        found |= {f"n{name}": self.normals[:, k] for k, name in enumerate(axes)}
        found |= {"area": self.area, "p": self.pressure}
        if viscous:
            found |= {f"tau_{name}": self.friction[:, k] for k, name in enumerate(axes)} | {"y_plus": self.y_plus}
        if self.temperature.size:
            found["T"] = self.temperature
        if viscous and self.heat.size:
            found |= {"heat_flux": self.heat, "conductivity": self.conductivity}
        return found | ({"moves": self.moves} if self.moves.any() else {})


def patch_values(flow: CompressibleFlow, patches: str | Sequence[str]) -> PatchValues:
    """Return what the present state does at the faces of one or several patches. Collective.

    ``p = f . n``, ``tau = f - p n``, ``q = e - f . u``, ``y+ = y sqrt(rho |tau|) / mu``, conductivity ``gamma R_g mu /
    ((gamma - 1) Pr)``; see the module.

    Raises
    ------
    SolverError
        If a patch does not exist or is named twice.
    """
    flow.before()
    cv, d, local, gas = flow.volumes, flow.dimension, flow.spaces.elements.local, flow.gas
    numbers = patch_numbers(flow, patches)
    whole, w = flow.outflow.read()[local(numbers)], flow.w.read()[local(numbers)]
    flux = whole[:, 1 : 1 + d]
    face = numbers - cv.cells + cv.interior
    normals, area = cv.normals[face], cv.area[face]
    pressure = np.einsum("ij,ij->i", flux, normals)
    friction = flux - pressure[:, None] * normals
    plus, conductivity = np.full((2, numbers.size), np.nan)
    temperature = gas.temperature(w[:, : d + 2])
    heat = whole[:, 1 + d] - np.einsum("ij,ij->i", flux, w[:, 1 : 1 + d])  # less the work on a wall that slides
    heat[np.abs(whole[:, 0]) > _TIGHT * w[:, 0] * gas.sound(w[:, : d + 2])] = np.nan
    if gas.viscosity is not None:
        mu = np.asarray(gas.viscosity.at(temperature))
        conductivity = mu * gas.gamma * gas.constant / ((gas.gamma - 1.0) * gas.prandtl)
        plus = cv.spacing[face] * np.sqrt(w[:, 0] * np.linalg.norm(friction, axis=1)) / mu
    names = [patches] if isinstance(patches, str) else patches
    walls = {name: flow.boundaries.get(name) for name in names}
    turning = [name for name, wall in walls.items() if isinstance(wall, NoSlipWall) and moves(wall.velocity)]
    moving = np.isin(numbers, patch_numbers(flow, turning)).astype(np.float64)
    numbered = [plus, temperature, heat, conductivity, moving]
    table = np.concatenate(
        [cv.centres[numbers], normals, area[:, None], pressure[:, None], friction, np.stack(numbered, axis=1)], axis=1
    )
    order = cv.shared.elements.numbers[local(numbers)]
    table = np.concatenate([order[:, None].astype(np.float64), table], axis=1)
    whole = np.concatenate(to_first(flow.context.comm, table))
    whole = whole[np.argsort(whole[:, 0], kind="stable"), 1:]
    return PatchValues(
        whole[:, :d], whole[:, d : 2 * d], whole[:, 2 * d], whole[:, 2 * d + 1], whole[:, 2 * d + 2 : 3 * d + 2],
        *whole[:, 3 * d + 2 :].T,
    )  # fmt: skip


_PRESSURE, _FRICTION, _MOMENT, _MASS, _THROUGH, _ENERGY, _AREA = 0, 3, 6, 9, 10, 11, 12
_SUMS = 13
"""Where the sums are in their common value: three vectors, four numbers."""


@kernel
def surface_sums(
    flux: Read, face: Read, place: Read, sums: Inc, *, d: Const[int], p: float, x: float, y: float, z: float
):  # fmt: skip
    """Add the force on a boundary face, ``F = (f - p_inf n) A``, its moment about ``(x, y, z)``, and what passes.

    ``sums``: the normal and the tangential part of ``F``, ``(x - x_0) x F``, ``m A``, ``|m| A``, ``e A`` with the
    fluxes of mass and energy, ``A``; see the module.
    """
    area = face[d]
    n = zeros(3)
    f = zeros(3)
    arm = zeros(3)
    along = 0.0
    for k in range(d):
        n[k] = face[k]
        arm[k] = place[k]
        f[k] = flux[1 + k] - p * n[k]
        along += f[k] * n[k]
    arm[0] -= x
    arm[1] -= y
    arm[2] -= z
    for k in range(3):
        sums[k] += along * n[k] * area
        sums[3 + k] += (f[k] - along * n[k]) * area
    sums[6] += (arm[1] * f[2] - arm[2] * f[1]) * area
    sums[7] += (arm[2] * f[0] - arm[0] * f[2]) * area
    sums[8] += (arm[0] * f[1] - arm[1] * f[0]) * area
    sums[9] += flux[0] * area
    sums[10] += fabs(flux[0]) * area
    sums[11] += flux[1 + d] * area
    sums[12] += area


@kernel
def surface_means(w: Read, face: Read, sums: Inc, *, d: Const[int], gamma: float, constant: float):
    """Add ``p A``, ``p_0 A`` with the total pressure, and ``T A`` of the state ``w`` at a boundary face.

    ``p_0 = p (1 + (gamma - 1) / 2 M^2)^(gamma / (gamma - 1))``, ``T = p / (rho R_g)``.
    """
    square = 0.0
    for k in range(d):
        square += w[1 + k] * w[1 + k]
    p = w[1 + d]
    mach = square * w[0] / (gamma * p)
    sums[0] += p * face[d]
    sums[1] += p * pow(1.0 + 0.5 * (gamma - 1.0) * mach, gamma / (gamma - 1.0)) * face[d]
    sums[2] += p / (w[0] * constant) * face[d]


@dataclass(frozen=True)
class SurfaceForce:
    """What a flow does to patches at a moment; in two dimensions for a span of 1.

    Attributes
    ----------
    pressure, friction : (d,)
        Parts of the force along the normals of the faces and along the faces, N.
    moment : (3,)
        N m; in two dimensions only the last component is not 0.
    mass, energy
        That leave through the patches, kg/s and W.
    through
        Mass that passes them, out or in, kg/s.
    area
        Of the patches, m^2.
    mean_pressure, mean_total, mean_temperature
        Means over the area of pressure, total pressure and temperature at the faces, Pa and K.
    """

    pressure: Array
    friction: Array
    moment: Array
    mass: float
    energy: float
    through: float
    area: float
    mean_pressure: float = nan
    mean_total: float = nan
    mean_temperature: float = nan

    @property
    def total(self) -> Array:
        """Pressure and friction, ``(d,)``."""
        return self.pressure + self.friction


@dataclass(frozen=True)
class Coefficients:
    """Drag, lift and moment over ``q A`` and ``q A L``; the moment is positive if it lifts the nose."""

    drag: float
    lift: float
    moment: float


@dataclass(frozen=True)
class AerodynamicReference:
    """What coefficients refer to.

    Attributes
    ----------
    stream, gas
        The free stream: drag is along it, lift across it and across the span.
    area, length
        For forces, and for moments beside it; in two dimensions ``area`` is a length, the chord.
    up
        Axis from the lower to the upper side; by default ``y`` in two dimensions and ``z`` in three.

    Raises
    ------
    SolverError
        If a number is not positive, the gas is at rest, or the axis is none.
    """

    stream: FreeStream
    gas: Gas
    area: float = 1.0
    length: float = 1.0
    up: int | None = None

    def __post_init__(self) -> None:
        for name in ("area", "length"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise SolverError(f"reference: {name}: a positive number is wanted, not {value!r}")
        if self.stream.mach <= 0.0:
            raise SolverError("reference: the free stream is at rest: coefficients need a Mach number above 0")
        if self.axis not in range(1, len(self.stream.direction)):
            raise SolverError(f"reference: up: axis 1, or in three dimensions 2, not {self.up!r}")

    @property
    def axis(self) -> int:
        """Number of the axis that leads up."""
        return len(self.stream.direction) - 1 if self.up is None else self.up

    @property
    def along(self) -> tuple[Array, Array]:
        """Vectors of drag and lift, ``(d,)``, of any length."""
        way = np.asarray(self.stream.direction, dtype=np.float64)
        lift = np.zeros_like(way)
        lift[0], lift[self.axis] = -way[self.axis], way[0]
        if not lift.any():
            raise SolverError("reference: the free stream is along the span: there is no direction of lift")
        return way, lift

    @property
    def directions(self) -> tuple[Array, Array]:
        """Unit vectors of drag and lift, ``v / |v|``, ``(d,)``."""
        way, lift = self.along
        return way / np.linalg.norm(way), lift / np.linalg.norm(lift)

    def of(self, force: SurfaceForce) -> Coefficients:
        """Return coefficients of a force, ``c_d = F . e_d / (q A)``, ``c_l = F . e_l / (q A)``, ``c_m = M / (q A l)``.

        ``q = rho U^2 / 2``.
        """
        drag, lift = self.directions
        scale = 1.0 / (self.stream.dynamic_pressure(self.gas) * self.area)
        pitch = force.moment[1] if self.axis == 2 else -force.moment[2]
        return Coefficients(
            float(scale * force.total @ drag), float(scale * force.total @ lift), float(scale / self.length * pitch)
        )


class SurfaceForces:
    """Forces on some groups of patches, from the fluxes of the present state. Collective.

    Parameters
    ----------
    flow
        Whose.
    groups
        Name to patches.
    pressure
        Outside, which is left out of the forces; of no effect on a closed body.
    points
        Name to the place that the moment is about; the origin by default.

    Raises
    ------
    SolverError
        If a patch does not exist, or a point has another dimension.
    """

    def __init__(
        self,
        flow: CompressibleFlow,
        groups: Mapping[str, Sequence[str]],
        *,
        pressure: float = 0.0,
        points: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        self.flow = flow
        d, elements = flow.dimension, flow.spaces.elements
        place = elements.dat(flow.volumes.centres, "place")
        self._sums = {name: flow.context.scalar(np.zeros(_SUMS), f"forces.{name}") for name in groups}
        self._means = {name: flow.context.scalar(np.zeros(3), f"means.{name}") for name in groups}
        loops: list[Loop | Reset] = []
        for name, patches in groups.items():
            point = tuple((points or {}).get(name, ())) or (0.0,) * d
            if len(point) != d:
                raise SolverError(f"forces on {name}: a point of {d} coordinates is wanted, not {point!r}")
            x, y, z = (*point, 0.0)[:3]
            over = patch_elements(flow, patches)
            loops += [
                Reset(self._sums[name]),
                Reset(self._means[name]),
                Loop(surface_sums, over, flow.outflow, flow.face[flow.edge[0]], place, self._sums[name],
                     d=d, p=float(pressure), x=float(x), y=float(y), z=float(z)),
                Loop(surface_means, over, flow.w, flow.face[flow.edge[0]], self._means[name], d=d,
                     gamma=flow.gas.gamma, constant=flow.gas.constant),
            ]  # fmt: skip
        self.chain = Chain(loops, name="forces")

    def now(self) -> dict[str, SurfaceForce]:
        """Return the forces of the present state, by the names of the groups.

        Raises
        ------
        SolverError
            If one is not finite.
        """
        self.flow.before()
        self.take()
        return self.collect()

    def take(self) -> None:
        """Let the device find the forces from the fluxes that are there, those of `CompressibleFlow.before`."""
        self.chain()

    def collect(self) -> dict[str, SurfaceForce]:
        """Return what `take` asked for last, as `now` does."""
        found = Global.read_all(list(self._sums.values()))
        return {name: self._of(name, np.asarray(sums)) for name, sums in zip(self._sums, found, strict=True)}

    def _of(self, name: str, sums: Array) -> SurfaceForce:
        if not np.isfinite(sums).all():
            self.flow.check()
            raise SolverError(f"forces on {name}: not finite at step {self.flow.steps}")
        d, area = self.flow.dimension, sums[_AREA]
        means = np.asarray(self._means[name].value) / area if area else np.full(3, nan)
        return SurfaceForce(
            sums[_PRESSURE : _PRESSURE + d].copy(), sums[_FRICTION : _FRICTION + d].copy(),
            sums[_MOMENT : _MOMENT + 3].copy(), *(float(sums[k]) for k in (_MASS, _ENERGY, _THROUGH, _AREA)),
            *means.tolist(),
        )  # fmt: skip
