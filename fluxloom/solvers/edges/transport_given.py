"""What a scalar on edges is given in space and time: its values and fluxes at patches, its source."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.edges.point_mesh import PointMesh
from fluxloom.fe.edges.transport import add, hold
from fluxloom.fv.given import Given, changes, given_values, parts_of
from fluxloom.linalg.vectors import copy
from fluxloom.values.given_on import GivenOn

__all__ = ["BEGIN", "END", "MIDDLE", "ScalarSources", "ScalarValues"]

Array = npt.NDArray[np.float64]

BEGIN, MIDDLE, END = range(3)
"""Moments of a step."""


class ScalarValues:
    """The values at patches where the scalar is given; where patches meet, the later one counts.

    Parameters
    ----------
    mesh, places
        The points, and where they are, ``(n, d)``.
    given
        Patch to its value.

    Attributes
    ----------
    dat
        The values; zero elsewhere.
    held
        The points that have one; None: there is none.
    names
        Patches that give it.
    owner : (n,)
        Place among them of the patch that gives it; -1 at other points.
    moves
        Whether any of them changes in time.

    Raises
    ------
    SolverError
        If a patch does not exist, or a value does not fit.
    """

    def __init__(self, mesh: PointMesh, places: Array, given: Mapping[str, Given]) -> None:
        points, patches, context = mesh.points, mesh.patches, mesh.context
        check_names("given", patches, given)
        values, owner, names = np.zeros(points.size), np.full(points.size, -1), tuple(given)
        for k, (name, scalar) in enumerate(given.items()):
            where = patches[name].points
            values[where], owner[where] = given_values(f"patch {name!r}", scalar, places[where]), k
        self.dat, self.owner, self.names = context.dat(points, values, "given"), owner, names
        self.held = context.subset(points, np.flatnonzero(owner >= 0), "given") if given else None
        self._values = [
            GivenOn(context, context.subset(points, np.flatnonzero(owner == k), f"given.{name}"), places,
                    parts_of(given[name]), f"patch {name!r}", out=self.dat, moments=2)
            for k, name in enumerate(names) if changes(given[name])
        ]  # fmt: skip
        self.moves = bool(self._values)

    def hold(self, c: Dat, moment: int) -> list[Loop]:
        """Return the loops that set what is given in the middle or at the end of a step."""
        if self.held is None:
            return []
        loops = [loop for values in self._values for loop in values.loops(moment - MIDDLE)]
        return [*loops, Loop(hold, self.held, self.dat, c, name="hold")]

    def prepare(self, time: float, dt: float) -> None:
        """Say when a step begins and how long it is."""
        for values in self._values:
            values.prepare([time + 0.5 * dt, time + dt])

    def check(self) -> None:
        """Raise `SolverError` where a value was not finite. Collective."""
        for values in self._values:
            values.check()

    def update(self, time: float) -> None:
        """Make them those of a time."""
        for values in self._values:
            values.update(time)


class ScalarSources:
    """The source, and what patches give: ``s + sum q A / M``, with the area ``A`` and the lumped mass ``M`` of points.

    Parameters
    ----------
    mesh, places
        The points, and where they are, ``(n, d)``.
    mass
        Lumped, of the points.
    source
        Of the scalar a second.
    fluxes
        Patch to what diffuses in through it.

    Attributes
    ----------
    dat
        The sum of both.
    moves
        Whether any of it changes in time.

    Raises
    ------
    SolverError
        If a patch does not exist, or a value does not fit.
    """

    def __init__(
        self, mesh: PointMesh, places: Array, mass: Array, source: Given, fluxes: Mapping[str, Given]
    ) -> None:  # fmt: skip
        points, context = mesh.points, mesh.context
        check_names("fluxes", mesh.patches, fluxes)
        self.moves = changes(source) or any(changes(flux) for flux in fluxes.values())
        self.dat = context.dat(points, given_values("source", source, places), "source")
        total, self._values, sums = self.dat.read(), list[GivenOn](), list[Loop]()
        plain = self.dat
        if self.moves:
            plain = context.dat(points, total, "source.plain") if fluxes else self.dat
            self._values.append(GivenOn(context, points, places, parts_of(source), "source", out=plain, moments=3))
            sums += [Loop(copy, points, plain, self.dat, systems=1, name="source")] if fluxes else []
        for name, flux in fluxes.items():
            patch = mesh.patches[name]
            share = np.zeros((points.size, 1))
            share[patch.points, 0] = patch.extents / mass[patch.points]
            over = context.subset(points, patch.points, f"flux.{name}")
            values = GivenOn(context, over, places, parts_of(flux), f"patch {name!r}", weights=share, moments=3)
            total[patch.points] += values.dat.read().reshape(-1)[patch.points]
            self._values.append(values)
            sums.append(Loop(add, over, values.dat, self.dat, name=f"flux.{name}"))
        self.dat.write(total)
        self._sums = sums if self.moves else []

    def loops(self, moment: int) -> list[Loop]:
        """Return the loops to the source of a moment of a step; nothing where it stays."""
        return [*(loop for values in self._values for loop in values.loops(moment)), *self._sums]

    def prepare(self, time: float, dt: float) -> None:
        """Say when a step begins and how long it is."""
        for values in self._values:
            values.prepare([time, time + 0.5 * dt, time + dt])

    def check(self) -> None:
        """Raise `SolverError` where a value was not finite. Collective."""
        for values in self._values:
            values.check()


def check_names(what: str, patches: Mapping[str, object], names: Mapping[str, object]) -> None:
    """Raise `SolverError` for a name that is not that of a patch."""
    for name in names:
        if name not in patches:
            known = ", ".join(patches) or "none"
            raise SolverError(f"{what}: no patch {name!r}{did_you_mean(name, patches)} (patches: {known})")
