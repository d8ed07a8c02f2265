"""Forces and torques on sides and bodies of a lattice Boltzmann flow, and what passes its sides, in physical units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Read, Write
from fluxloom.core.errors import SolverError
from fluxloom.dsl.run.loop import Loop
from fluxloom.flows.lattice.given.units import Units
from fluxloom.flows.lattice.ranks import gather_rows
from fluxloom.flows.lattice.sums import KeptNumbers, KeptValues
from fluxloom.kernel.frontend import kernel
from fluxloom.lbm.boundaries import Slip, Wall
from fluxloom.lbm.boundaries.in_time import AT_LINKS, InTime
from fluxloom.lbm.cells.box import side_names
from fluxloom.run.measures import Loads
from fluxloom.solvers.lattice.flow import LatticeBoltzmann

__all__ = ["LatticeSurface"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Passed:
    """What passes a side.

    Attributes
    ----------
    flow
        Volume that leaves, m^3/s; in the plane for a span of 1.
    pressure, total
        The pressure over that of density one by the density, and with ``u^2 / 2``, both times the area.
    area
        Of the cells of fluid along the side.
    """

    flow: float
    pressure: float
    total: float
    area: float


@kernel
def leaving(out: Read, found: Write):
    """Take what leaves a cell along some directions, ``found_k = f_k``."""
    for k in range(len(found)):
        found[k] = out[k]


class _Along:
    """The cells of fluid along a side; their centres are half a cell inside of it. Collective.

    Parameters
    ----------
    flow, units
        What is looked at, and in which units.
    name
        Of the side.
    """

    def __init__(self, flow: LatticeBoltzmann, units: Units, name: str) -> None:
        self._flow, self._units, self._given = flow, units, flow.conditions.given[name]
        self._axis, self._outward = flow.box.axis(name)
        at = list(flow.box.inside)
        last = flow.box.shape[self._axis]
        at[self._axis] = slice(0, 1) if self._outward < 0 else slice(last - 1, last)
        labels = flow.conditions.labels
        here = np.zeros(labels.shape, dtype=bool)
        here[tuple(at)] = labels[tuple(at)] == 0
        self._over = flow.space.elements(np.flatnonzero(here).astype(np.int64), f"{name} surface")


class _Opening(_Along):
    """What passes a side."""

    def __init__(self, flow: LatticeBoltzmann, units: Units, name: str) -> None:
        super().__init__(flow, units, name)
        ctx, over = flow.context, self._over
        self._above = ctx.dat(over.set, name=f"{name} density looked at", dtype=flow.real)
        self._u = ctx.dat(over.set, name=f"{name} velocity looked at", shape=(units.dimension,), dtype=flow.real)
        self._loops = flow.look_at(over, self._above, self._u, f"{name} surface")

    def take(self) -> None:
        """Let the device find the values of now."""
        self._loops[self._flow.steps % len(self._loops)]()

    def collect(self) -> _Passed:
        """Return the sums of what was taken."""
        units = self._units
        u = self._u.read().astype(np.float64) * units.speed
        p = self._above.read().astype(np.float64).ravel() / 3.0 * units.speed**2
        one = units.dx ** (units.dimension - 1)
        total = p + 0.5 * (u**2).sum(axis=1)
        flow = self._outward * u[:, self._axis].sum() # half a cell inside
        flow *= not isinstance(self._given, Slip)
        sums = np.array([flow, p.sum(), total.sum(), float(len(p))]) * one
        return _Passed(*map(float, self._flow.context.comm.reduce(sums, "sum")))


class _WallSide(_Along):
    r"""What acts on the faces of a wall along a side: the momentum through the links of each cell, by area.

    From now on :math:`f_o` leaves towards the wall and comes back as :math:`f_o + 6 w\, c_i u`
    (`fluxloom.lbm.boundaries.link_kernels`). Where not all neighbours along the side are fluid, as at its ends, other
    sides or bodies have some of the links, and there is no value.
    """

    def __init__(self, flow: LatticeBoltzmann, units: Units, name: str) -> None:
        super().__init__(flow, units, name)
        lattice, over = flow.lattice, self._over
        out = np.flatnonzero(np.array(lattice.velocities)[:, self._axis] == self._outward)
        self._c, self._w = -np.array(lattice.velocities)[out], np.array(lattice.weights)[out]
        self._out = flow.context.dat(over.set, name=f"{name} leaving", shape=(len(out),), dtype=flow.real)
        cells = np.repeat(over.cells[:, None], len(out), axis=1)
        slots = flow.space.departed(over, cells, np.broadcast_to(out, cells.shape), f"{name} out")
        self._loops = [Loop(leaving, over.set, slot, self._out, name=f"{name} surface") for slot in slots]
        fluid = flow.fluid.take(0 if self._outward < 0 else -1, axis=self._axis)
        self._shape, joined, self._known = fluid.shape, np.delete(flow.box.periodic, self._axis), fluid.copy()
        for way in np.delete(self._c, self._axis, axis=1):
            beside = fluid
            for k in np.flatnonzero(way):
                beside = np.roll(beside, way[k], axis=k)
                beside[(*[slice(None)] * k, 0 if way[k] > 0 else -1)] &= joined[k]
            self._known &= beside

    def _velocity(self) -> Array:
        """Return that of the wall where links meet it, ``(cells, links, d)``, or what broadcasts to that."""
        flow, given = self._flow, self._given
        assert isinstance(given, Wall)
        if not isinstance(given.velocity, InTime):
            return np.asarray((0.0,) * flow.lattice.dimensions if given.velocity is None else given.velocity)
        places = np.stack(flow.box.coordinates(self._over.cells), axis=1)[:, None] - 0.5 * self._c
        time = (flow.steps + AT_LINKS) * self._units.dt
        return given.velocity.at(places.reshape(-1, places.shape[2]), time).reshape(places.shape)

    def columns(self) -> dict[str, Array]:
        """Return the columns of `LatticeSurface.faces` on rank 0, elsewhere nothing. Collective."""
        flow, units, comm, d = self._flow, self._units, self._flow.context.comm, self._units.dimension
        self._loops[flow.steps % len(self._loops)]()
        out, u = self._out.read().astype(np.float64) / flow.space.unit, self._velocity()
        kick = 6.0 * self._w * (self._c * u).sum(axis=-1)
        push = -(2.0 * out + kick) @ self._c + (np.broadcast_to(kick, out.shape)[..., None] * u).sum(axis=1)
        _, numbers = flow.box.across(self._over.cells, self._axis)
        rows, numbers = gather_rows(comm, push), gather_rows(comm, numbers)
        if rows is None or numbers is None:
            return {}
        stress = np.full((self._known.size, d), np.nan)
        stress[np.concatenate(numbers)] = np.concatenate(rows)[:, ::-1] * units.force / units.dx ** (d - 1)
        stress[~self._known.ravel()] = np.nan
        places = [at.ravel().astype(np.float64) for at in np.indices(self._shape)]
        at = -0.5 if self._outward < 0 else flow.box.shape[self._axis] - 0.5
        places.insert(self._axis, np.full(len(stress), at))
        across, axes = d - 1 - self._axis, "xyz"[:d]
        found = dict(zip(axes, units.points(np.stack(places, axis=1)), strict=True))
        found |= {f"n{x}": np.full(len(stress), float(self._outward * (k == across))) for k, x in enumerate(axes)}
        found |= {"area": np.full(len(stress), units.dx ** (d - 1)), "p": self._outward * stress[:, across]}
        stress[:, across] *= 0.0
        found |= {f"tau_{x}": stress[:, k] for k, x in enumerate(axes)}
        speed = np.sqrt(np.linalg.norm(stress, axis=1) / units.density)
        return found | {"y_plus": 0.5 * units.dx * speed / units.viscosity}


class LatticeSurface:
    """Sides and bodies as a surface (`fluxloom.run.measures.Surface`).

    Forces and torques are those of walls and bodies, by the exchange of momentum, which knows no parts of pressure and
    friction, and the area of no body: they are not a number. Of sides that are no walls there are sums over the cells
    along them, and no force. Along sides that are walls there are values of faces.

    Parameters
    ----------
    flow, numbers
        What is measured, and what is asked for forces.
    units
        Of the flow.
    patches
        Names of sides, bodies and immersed bodies.
    about
        Point of the moment; empty: the origin, and without a number where no torque is measured.

    Raises
    ------
    SolverError
        If there is none of a name, or its force, or its torque where a point is given, is not measured.
    """

    def __init__(
        self, flow: LatticeBoltzmann, numbers: KeptNumbers, units: Units, patches: Sequence[str], about: Sequence[float]
    ) -> None:
        d = units.dimension
        if len(about) not in (0, d):
            raise SolverError(f"about: a point has {d} coordinates, not {len(about)}")
        self._flow, self._numbers, self._units = flow, numbers, units
        self.patches: Sequence[str] = tuple(patches)
        self._about = np.array(list(about) or [0.0] * d)
        given = flow.conditions.given
        self._openings = [
            _Opening(flow, units, name) for name in patches if name in given and not isinstance(given[name], Wall)
        ]
        self._walls = [name for name in patches if name not in given or isinstance(given[name], Wall)]
        for name in self._walls:
            numbers.measure(name)
        lacking = [name for name in self._walls if not self._immersed(name) and self._wall(name).center is None]
        if len(about) and lacking:
            raise SolverError(f"no torque is measured on {lacking[0]!r}: make its body, or the side, with torque=True")
        self._turns = not lacking and not self._openings
        self._sides: dict[str, _WallSide] = {}
        self._kept: KeptValues | None = None
        self._asked: dict[str, Array] | None = None

    def _immersed(self, name: str) -> bool:
        return self._flow.immersed is not None and name in self._flow.immersed.names

    def _wall(self, name: str) -> Wall:
        found = self._flow.conditions.given[name]
        assert isinstance(found, Wall)
        return found

    def take(self) -> None:
        """Let the device find the sums of now, or of the step that the flow looks back at."""
        for opening in self._openings:
            opening.take()
        numbers = self._numbers
        if self._walls and numbers.apart and not numbers.back and self._flow.steps:
            if self._kept is None:
                self._kept = numbers.keep(self._walls)
            self._kept.take()
            self._asked = None
            return
        found = {f"force on {name}": numbers.force_on(name) for name in self._walls}
        if self._turns:
            found |= {f"torque on {name}": numbers.torque_on(name) for name in self._walls}
        self._asked = found

    def collect(self) -> Loads:
        """Return what `take` asked for last: ``F = sum F_b`` of bodies, ``M = sum (M_b + (x_b - x_0) x F_b)``."""
        d, units = self._units.dimension, self._units
        if self._asked is None:
            assert self._kept is not None
            self._asked = self._kept.values()
        force, moment, lost = np.zeros(d), np.zeros(3), np.full(d, np.nan)
        for name in self._walls:
            own = self._asked[f"force on {name}"][::-1] * units.force
            force += own
            if self._turns:
                torque = self._asked[f"torque on {name}"][::-1] * units.force * units.dx
                moment[3 - torque.size :] += torque
                arm = np.zeros((2, 3))
                arm[:, :d] = self._center(name) - self._about, own
                moment += np.cross(arm[0], arm[1])
        passed = [opening.collect() for opening in self._openings]
        sides, area = side_names(d), sum(one.area for one in passed)
        means: dict[str, float] = {}
        if passed and not self._walls:
            means = {"p": sum(one.pressure for one in passed) / area}
            means["total_pressure"] = sum(one.total for one in passed) / area
        area += sum(_side_area(self._flow, units, name) if name in sides else np.nan for name in self._walls)
        return Loads(
            lost, lost, moment if self._turns else np.full(3, np.nan), sum(one.flow for one in passed), area,
            means=means, total=lost if passed else force, turns=self._turns,
        )  # fmt: skip

    def _center(self, name: str) -> Array:
        """Return the point that a torque is about, x first."""
        center = self._flow.immersed.centre(name) if self._immersed(name) else self._wall(name).center
        return np.array([x[0] for x in self._units.points(np.asarray(center, dtype=np.float64)[None])])

    def carried(self) -> Mapping[str, tuple[float, float]]:
        """Return nothing: no scalars are carried."""
        return {}

    def faces(self) -> Mapping[str, Array]:
        """Return values of the faces of the cells along walls: ``p`` over that of density one and shear, N/m^2, and y+.

        Raises
        ------
        SolverError
            If one of the patches is no wall along a side of the box.
        """
        given, sides = self._flow.conditions.given, side_names(self._units.dimension)
        walls = [name for name in given if name in sides and isinstance(given[name], Wall)]
        for name in self.patches:
            if name not in walls:
                what = "no wall" if name in sides else "a body, whose walls are links between cells and not faces"
                raise SolverError(
                    f"there are no values along {name!r}, {what}: a lattice has them along sides that are walls "
                    f"({', '.join(walls) or 'here none'}), and of a body the whole force, [forces.{name}]"
                )
            if name not in self._sides:
                self._sides[name] = _WallSide(self._flow, self._units, name)
        parts = [self._sides[name].columns() for name in self.patches]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _side_area(flow: LatticeBoltzmann, units: Units, name: str) -> float:
    """Return the area of a side of the box, in the plane its length."""
    axis, _ = flow.box.axis(name)
    return float(np.prod([n * units.dx for k, n in enumerate(flow.box.shape) if k != axis]))
