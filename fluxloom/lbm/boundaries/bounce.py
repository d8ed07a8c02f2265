"""Bounce-back while it is built: one part for a wall, or for many that are of one kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import SoA
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import Argument
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.lbm.boundaries.hydrostatics import Weights, standing_force
from fluxloom.lbm.boundaries.in_time import AT_LINKS, InTime, Timed, changing, move
from fluxloom.lbm.boundaries.link_kernels import Momentum, bounce, copy, turns_of
from fluxloom.lbm.boundaries.part import Part, Site, own_components
from fluxloom.lbm.boundaries.ramp import Ramp
from fluxloom.lbm.boundaries.sums import LinkSums, WallSum
from fluxloom.lbm.boundaries.values import Places, Reals, Vectors, speeds_at
from fluxloom.lbm.cells.links import HALF_WAY, Links, joined_links
from fluxloom.lbm.streaming.space import Space

__all__ = ["WallValues", "bounce_part", "bounce_parts"]

_TIGHT = 1e-12
"""Velocity across a wall that is rounding."""

_ONE_WAY = 0.5
"""Share of what goes through the links of a body: half of it and more one way is no motion of a tight one."""


@dataclass(frozen=True)
class WallValues:
    """What is known of a wall; see `fluxloom.lbm.boundaries.Wall`."""

    velocity: Vectors | None = None
    interpolated: bool = False
    measure: bool = False
    center: Sequence[float] | None = None
    permeable: bool = False

    @property
    def kind(self) -> tuple[bool, bool, bool, bool, int]:
        """What the loops depend on: interpolated, moving, and whether force and torque are measured; what changes."""
        changes = id(self.velocity) if changing(self.velocity) else 0
        return self.interpolated, self.velocity is not None, self.measure, self.center is not None, changes


def bounce_part(space: Space, site: Site, wall: WallValues, *, ramp: int = 0) -> Part:
    """Return bounce-back on all links of a side or body; the velocity grows in the steps of a ramp."""
    return bounce_parts(space, [(site, wall)], ramp=ramp)[0]


def bounce_parts(space: Space, walls: Sequence[tuple[Site, WallValues]], *, ramp: int = 0) -> list[Part]:
    """Return bounce-back on all links of walls that are of one kind (`WallValues.kind`), as a part each.

    All links are in one loop, which the first of the parts has.
    """
    kept = [(site, wall) for site, wall in walls if len(site.links)]
    parts = dict(zip([site.name for site, _ in kept], _Bounce(space, kept, ramp).parts() if kept else (), strict=True))
    return [parts.get(site.name) or Part(site.name, [()], links=0) for site, _ in walls]


@dataclass(frozen=True, eq=False)
class _Member:
    """One of the walls of a part.

    Attributes
    ----------
    site, wall
        What it is.
    links
        Those of this rank, and their numbers among all of the part.
    total
        Number of its links on all ranks.
    """

    site: Site
    wall: WallValues
    links: Links
    numbers: npt.NDArray[np.int64]
    total: int

    def places(self, space: Space) -> Places:
        """Return where the walls of the links are."""
        site, links = self.site, self.links
        at = np.stack(space.box.coordinates(links.cells), axis=-1)
        c = np.array(space.lattice.velocities)[links.directions]
        positions = at - links.fractions[:, None] * c
        if site.axis is None:
            return Places(site.name, positions, comm=space.context.comm)
        return Places(site.name, positions, *space.box.across(links.cells, site.axis), space.context.comm)

    def center(self, dimensions: int) -> Reals:
        """Return the point about which torques are taken."""
        found = np.asarray(self.wall.center, dtype=np.float64)
        if found.shape != (dimensions,) or not np.all(np.isfinite(found)):
            raise SolverError(
                f"{self.site.name}: center={self.wall.center}: it has {dimensions} finite coordinates"
            )
        return found


class _Bounce:
    """Bounce-back while it is built: arrays and dats of the links."""

    def __init__(self, space: Space, walls: Sequence[tuple[Site, WallValues]], ramp: int) -> None:
        self.space, self.steps = space, ramp
        interpolated, moving, self.measured, self.turning, _ = walls[0][1].kind
        stands = space.force is not None and any(walls[0][0].standing)
        self.moving = moving or (interpolated and stands)
        self.name = walls[0][0].name if len(walls) == 1 else "bodies"
        links = joined_links([site.links for site, _ in walls])
        owner = np.repeat(np.arange(len(walls)), [len(site.links) for site, _ in walls])
        order = space.order(links.cells, links.directions)
        self.over = space.elements(links.cells[order], f"{self.name} links")
        mine = order[self.over.which]
        self.links, self.owner = links[mine], owner[mine]
        ends = np.cumsum(np.bincount(self.owner, minlength=len(walls)))[:-1]
        by_owner = np.split(np.argsort(self.owner, kind="stable"), ends)
        self.members = [
            _Member(site, wall, self.links[at], at, len(site.links))
            for (site, wall), at in zip(walls, by_owner, strict=True)
        ]
        self.c = np.array(space.lattice.velocities)[self.links.directions]
        self.own = np.ones(self.c.shape, dtype=np.int64)
        for member in self.members:
            self.own[member.numbers] = own_components(member.site, member.links, interpolated=interpolated)
        self.against = np.array(space.lattice.opposite)[self.links.directions]
        lacking = np.zeros(len(self.links), dtype=bool)
        self.share, self.stretch = np.ones((2, len(self.links)))
        self.second = np.zeros((0, 2), dtype=np.int64)
        if interpolated:
            lacking = self._interpolate(walls[0][0])
        comm = space.context.comm
        self.cut = any(comm.allgather(bool(np.any(self.links.cut))))
        self.interpolated = any(comm.allgather(bool(np.any(self.share != 1.0))))
        many = comm.allgather(np.bincount(self.owner[lacking], minlength=len(walls)))
        self.halfway: npt.NDArray[np.int64] = np.sum(many, axis=0)

    def _interpolate(self, site: Site) -> npt.NDArray[np.bool_]:
        """Set the share of the first population, the second one, and what the term of the moving wall is divided by.

        Returned is which links lack a second cell and are half-way.
        """
        q, cells = self.links.fractions, self.links.cells
        inwards, back_there = self._inwards(site)
        near = q < 0.5
        lacking = near & (~site.leads(cells, self.against, inwards) | self.space.box.leave(cells, self.c))
        self.share = np.where(lacking, 1.0, np.where(near, 2.0 * q, 0.5 / q))
        self.stretch = np.where(near, 1.0, 0.5 / q)
        first = np.stack([cells, self.against], axis=-1)
        ahead = np.stack([inwards, back_there], axis=-1)
        back = np.stack([cells, self.links.directions], axis=-1)
        self.second = np.where(lacking[:, None], first, np.where(near[:, None], ahead, back))
        return lacking

    def _inwards(self, site: Site) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the next cells away from walls, and the directions there of what comes to the wall.

        Behind a plane of symmetry the mirror images of both are those of a cell beside it.
        """
        box, cells = self.space.box, self.links.cells
        goal = np.stack(box.coordinates(cells), axis=-1) + self.c
        beyond = np.zeros(self.c.shape, dtype=bool)
        for axis, way in site.planes:
            beyond[:, axis] |= goal[:, axis] >= box.shape[axis] if way > 0 else goal[:, axis] < 0
        velocities = self.space.lattice.velocities
        number = {c: k for k, c in enumerate(velocities)}
        turned = np.where(beyond, -1, 1) * np.array(velocities)[self.against]
        directions = np.array([number[tuple(c)] for c in turned.tolist()], dtype=np.int64).reshape(-1)
        return box.shifted(cells, np.where(beyond, 0, self.c)), directions

    def parts(self) -> list[Part]:
        """Return the loops, which do what is wanted and no more."""
        space = self.space
        kick = speed = None
        if self.moving:
            kick = self.dat(np.zeros((len(self.share), 1)), "kick")
            speed = self.dat(np.zeros(self.c.shape), "velocity") if self.measured else None
        found = self._measured()
        weights = Weights(space, [member.site for member in self.members], self.name)

        def carry(force: Sequence[float]) -> None:
            weights.carry(force)
            if kicks is not None:
                kicks.carry(force)

        if self.measured and weights.any:
            found = replace(found, loops=(*found.loops, found.weighed(weights)))
        steps, late = self._loops(kick, speed, found)
        ramp = Ramp(space, self.over, kick, self.steps, self.name) if self.steps and kick is not None else None
        kicks = _Kicks(self, kick if ramp is None else ramp.target, speed) if kick is not None else None
        begin, state = None, ()
        timed = [] if kicks is None else kicks.timed
        if ramp is not None:
            begin = [[ramp.begin, *step] for step in steps]
            steps, state = [[ramp.loop, *step] for step in steps], ramp.state
        parts = []
        for k, member in enumerate(self.members):
            first = {"begin": begin, "state": state, "late": late, "carry": carry, "timed": timed}
            more: dict[str, Any] = first if k == 0 else {}
            parts.append(Part(
                member.site.name, steps if k == 0 else [()], links=member.total, halfway=int(self.halfway[k]),
                force=found.sums[k].get("force"), torque=found.sums[k].get("torque"),
                assign=None if kicks is None or timed or member.wall.velocity is None else kicks.setter(k),
                **more,
            ))  # fmt: skip
        return parts

    def _loops(self, kick: Dat | None, speed: Dat | None, found: _Measured) -> tuple[list[list[Any]], list[list[Any]]]:
        """Return what runs before a step, and behind all that reads what has left cells, for each parity."""
        outs, backs = self._slots()
        share = self.dat(self.share, "share") if self.interpolated else None
        heading = self.dat(self.own * self.c + 1, "heading", "uint8") if self.measured else None
        before = (share, kick, heading, speed, found.arm)
        momentum = Momentum(1.0 / self.space.unit) if self.measured else None
        words = ["interpolated" if self.interpolated else "half_way"] + ([] if self.moving else ["still"])
        words += [] if not self.measured else ["push"] if found.total is not None else [*found.sums[0]][-1:]
        over, title = self.over.set, f"{self.name} {'_'.join(words)}"
        steps, late = [], []
        held = self.dat(np.zeros((len(self.links), 1)), "held") if self.cut else None
        for out, back in zip(outs, backs, strict=True):
            loop = Loop(bounce, over, out, *before, held or back, *found.into, name=title, momentum=momentum)
            steps.append([*found.resets, loop, *found.loops])
            if held is not None:  # what a link cut between fluid cells replaces is read by the link at its other end
                late.append([Loop(copy, over, held, back, name=f"{self.name} put")])
        return steps, late

    def _slots(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        links, name = self.links, self.name
        cells, directions = links.cells, self.against
        if self.interpolated:
            cells = np.stack([cells, self.second[:, 0]], axis=-1)
            directions = np.stack([directions, self.second[:, 1]], axis=-1)
        outs = self.space.departed(self.over, cells, directions, f"{name} out")
        return outs, self.space.arriving(self.over, links.cells, links.directions, f"{name} back")

    def dat(self, values: npt.NDArray[Any], name: str, dtype: str = "") -> Dat:
        """Return values on the links."""
        full = f"{self.name} {name}"
        return self.space.context.dat(self.over.set, values, full, dtype=dtype or self.space.real, layout=SoA())

    def _arm(self) -> Dat | None:
        """Return the ways from the centres of rotation to the links, where torques are wanted."""
        if not self.turning:
            return None
        arm = np.zeros(self.c.shape)
        for member in self.members:
            arm[member.numbers] = member.places(self.space).positions - member.center(self.c.shape[1])
            if not member.wall.interpolated:  # it matters where on a link, if a side takes part
                at = (member.links.crossed != 0).any(axis=1)
                more = member.links.fractions[at] - HALF_WAY
                arm[member.numbers[at]] += more[:, None] * self.c[member.numbers[at]]
        return self.dat(arm, "arm")

    def _measured(self) -> _Measured:
        """Return the sums: of one wall the loop over its links adds to them, of many they are found behind it."""
        if not self.measured:
            return _Measured([{} for _ in self.members])
        d, arm = self.c.shape[1], self._arm()
        if len(self.members) > 1:
            push = self.dat(np.zeros(self.c.shape), "push")
            sums = LinkSums(self.space, self.over, self.owner, len(self.members), push, arm, self.name)
            found = [sums.of(k) for k in range(len(self.members))]
            return _Measured(found, into=(push, None, None), loops=tuple(sums.loops), total=sums.total)
        sizes = {"force": d} | ({} if arm is None else {"torque": turns_of(d)})
        one = {
            word: self.space.context.scalar(np.zeros(size), f"{self.name} {word}", dtype=self.space.total)
            for word, size in sizes.items()
        }
        return _Measured([one], arm, (None, one["force"], one.get("torque")), tuple(map(Reset, one.values())))


@dataclass(frozen=True)
class _Measured:
    """How forces and torques are summed.

    Attributes
    ----------
    sums
        ``"force"`` and ``"torque"`` of each wall.
    arm, into
        What it reads and writes for that.
    resets, loops
        What runs before it and behind it.
    total
        Forces of all walls, where there are several.
    """

    sums: Sequence[Mapping[str, Global | WallSum]]
    arm: Dat | None = None
    into: tuple[Dat | None, Global | None, Global | None] = (None, None, None)
    resets: tuple[Reset, ...] = ()
    loops: tuple[Loop, ...] = ()
    total: Dat | None = None

    def weighed(self, weights: Weights) -> Loop:
        """Return the loop that changes forces by the weight of fluid at rest."""
        if self.total is not None:
            return weights.behind(self.total)
        force = self.sums[0]["force"]
        assert isinstance(force, Global)
        return weights.into(force)


class _Kicks:
    """The terms of walls that move, wall by wall.

    Parameters
    ----------
    bounce
        Whose walls they are.
    kick, speed
        Where loops find the terms, and the velocities if these are wanted.
    """

    def __init__(self, bounce: _Bounce, kick: Dat, speed: Dat | None) -> None:
        self._space, self._members, self._c, self._stretch = bounce.space, bounce.members, bounce.c, bounce.stretch
        self._kick, self._speed = kick, speed
        self._kicks, self._speeds, self._own = np.zeros((len(bounce.c), 1)), np.zeros(bounce.c.shape), bounce.own
        weights = np.array(bounce.space.lattice.weights)[bounce.links.directions]
        self._directions = bounce.links.directions
        self._rest = -bounce.space.unit * (1.0 - bounce.share) * 3.0 * weights
        self._places = [member.places(bounce.space) for member in bounce.members]
        for k, member in enumerate(bounce.members):
            if member.wall.velocity is not None:
                self._set(k, member.wall.velocity)
        self._carried: Dat | None = None
        self.timed = self._in_time(bounce)
        self.carry(bounce.space.weight)

    def _in_time(self, bounce: _Bounce) -> list[Timed]:
        """Return what sets the terms anew in every step, where the velocity of these walls changes."""
        velocity = self._members[0].wall.velocity
        if not (isinstance(velocity, InTime) and velocity.changes):
            return []
        name, over = bounce.name, bounce.over.set
        positions = np.zeros(self._c.shape)
        for member, places in zip(self._members, self._places, strict=True):
            positions[member.numbers] = places.positions
        u = bounce.dat(np.zeros(self._c.shape), "velocity now")
        heading = bounce.dat(self._along()[:, None] * self._c, "headed")
        own, self._carried = bounce.dat(self._own, "own"), bounce.dat(np.zeros((len(self._c), 1)), "carried")
        loop = Loop(move, over, u, heading, own, self._carried, self._kick, self._speed, name=f"{name} moves")
        context = self._space.context
        return [Timed(context, over, positions, velocity, u, AT_LINKS, behind=[loop], inspect=self._inspect)]

    def _along(self) -> Reals:
        """Return what the velocity along each link is multiplied with."""
        weights = np.array(self._space.lattice.weights)[self._directions]
        return self._space.unit * self._stretch * 6.0 * weights

    def _inspect(self, u: Reals) -> None:
        """Raise `SolverError` where walls that should be tight let fluid through. Collective."""
        flux = 6.0 * np.array(self._space.lattice.weights)[self._directions] * (self._c * u).sum(axis=1)
        for member in self._members:
            self._check_tight(member, u[member.numbers], flux[member.numbers])

    def carry(self, force: Sequence[float]) -> None:
        """Take another uniform force, which fluid at rest carries (`fluxloom.lbm.boundaries.hydrostatics`)."""
        standing = standing_force(self._members[0].site, force, self._c.shape[1])
        self._stand = (self._rest * (self._c @ standing))[:, None]
        self._write()

    def setter(self, number: int) -> Callable[[Vectors], None]:
        """Return what gives a wall another velocity."""

        def assign(values: Vectors) -> None:
            self._set(number, values)
            self._write()

        return assign

    def _set(self, number: int, values: Vectors) -> None:
        member = self._members[number]
        at, weights = member.numbers, np.array(self._space.lattice.weights)
        u = speeds_at(values, self._places[number])
        flux = 6.0 * weights[member.links.directions] * (self._c[at] * u).sum(axis=1)
        self._check_tight(member, u, flux)
        self._kicks[at, 0] = self._space.unit * self._stretch[at] * flux
        self._speeds[at] = u * self._own[at]

    def _write(self) -> None:
        if self._carried is not None:
            self._carried.write(self._stand)
        self._kick.write(self._kicks + self._stand)
        if self._speed is not None:
            self._speed.write(self._speeds)

    def _check_tight(self, member: _Member, u: Reals, flux: Reals) -> None:
        """Raise `SolverError` if a wall that should be tight lets fluid through. Collective."""
        if member.wall.permeable:
            return
        name, axis, comm = member.site.name, member.site.axis, self._space.context.comm
        most = max(comm.allgather(0.0 if axis is None else float(np.abs(u[:, axis]).max(initial=0.0))))
        if most > _TIGHT:
            raise SolverError(
                f"{name}: the wall has a velocity of {most:.3g} across itself, which lets fluid through: walls move "
                "along themselves. Give a Velocity for an inlet, or Wall(..., permeable=True) for blowing and suction"
            )
        net, gross = (sum(comm.allgather(float(x.sum()))) for x in (flux, np.abs(flux)))
        if axis is None and abs(net) > _ONE_WAY * gross:
            way = "out of" if net > 0 else "into"
            raise SolverError(
                f"{name}: the velocity of the wall leads {way} the body all round, {abs(net):.3g} of mass a step: a "
                "surface moves along itself, or as the body does. For blowing and suction give "
                "Wall(..., permeable=True)"
            )
