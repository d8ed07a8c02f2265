"""Conditions of a lattice Boltzmann flow: those of the sides of its box and of the bodies in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.dsl.declare.dats import Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.lbm.boundaries import Body, Condition, Part, Sponge, Wall, beside_sponges, parts_of
from fluxloom.lbm.boundaries.sums import WallSum
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.cells.labels import Labels, labels_of
from fluxloom.lbm.streaming.space import Space

__all__ = ["Conditions", "labelled"]


class Conditions:
    """What happens at sides and bodies before every step.

    Parameters
    ----------
    space
        Where the populations are.
    boundaries
        Conditions of sides by name.
    bodies
        Solid bodies.
    labels
        What they make of each cell, from `labelled`.

    Raises
    ------
    SolverError
        If a condition does not fit, or parts of ranks are too thin.

    Attributes
    ----------
    labels
        0 where there is fluid, over the grid; see `fluxloom.lbm.cells.labels`.
    parts
        Conditions at run time, by name, in the order in which they run.
    given
        Conditions of sides and bodies by name, as they were given.
    """

    remembers = ("sums",)

    def __init__(
        self, space: Space, boundaries: Mapping[str, Condition | Sponge], bodies: Sequence[Body], labels: Labels
    ) -> None:
        self.space, self.labels = space, labels
        if boundaries or bodies:
            space.check_cut()
        self.given = beside_sponges(boundaries)
        self.given |= {body.name: body.condition for body in bodies}
        self.parts: dict[str, Part] = parts_of(space, boundaries, bodies, labels)

    def loops(self, parity: int) -> list[Loop | Reset]:
        """Return what runs before a step."""
        return [step for part in self.parts.values() for step in part.loops(parity)]

    @property
    def changing(self) -> bool:
        """Whether conditions set values that change in time."""
        return any(part.timed for part in self.parts.values())

    def prepare(self, step: int) -> None:
        """Say that a step is next: those before it are so many."""
        for part in self.parts.values():
            for one in part.timed:
                one.prepare(step)

    def check_given(self) -> None:
        """Raise `SolverError` where a value that changes in time was wrong in the last steps. Collective."""
        for part in self.parts.values():
            for one in part.timed:
                one.check()

    def begin(self, parity: int) -> None:
        """Do what comes once, before the first step from new populations."""
        for part in self.parts.values():
            for loop in part.begin(parity):
                loop()

    def force_on(self, name: str, others: Sequence[str] = ()) -> npt.NDArray[np.float64]:
        """Return the force of the fluid on a side or a body in the last step.

        Parameters
        ----------
        others
            Names of immersed bodies, for the message.

        Raises
        ------
        SolverError
            If nothing of that name measures a force.
        """
        part = self.parts.get(name)
        if part is None or part.force is None:
            measured = [*(key for key, part in self.parts.items() if part.force is not None), *others]
            there = ", ".join(repr(key) for key in measured) or "none"
            given = self.given.get(name)
            if given is None:
                raise SolverError(
                    f"there is no side or body {name!r}{did_you_mean(name, [*self.given, *others])}; forces are "
                    f"measured on: {there}"
                )
            what = "give its wall measure=True" if isinstance(given, Wall) else "only walls measure it"
            if isinstance(given, Wall) and given.measure:
                what = "no link leads to it from a fluid cell, as it is inside of another body, or solid all round"
            raise SolverError(
                f"no force is measured on {name!r}, a {type(given).__name__}: {what} (measured on: {there})"
            )
        return np.asarray(part.force.value, dtype=np.float64)

    def torque_on(self, name: str, others: Sequence[str] = ()) -> npt.NDArray[np.float64]:
        """Return the torque of the fluid on a side or a body in the last step, about the centre of its wall.

        Raises
        ------
        SolverError
            If nothing of that name measures a torque; ``others`` as in `force_on`.
        """
        self.force_on(name, others)
        torque = self.parts[name].torque
        if torque is None:
            raise SolverError(f"no torque is measured on {name!r}: give its wall a center=..., which it is about")
        return np.asarray(torque.value, dtype=np.float64)

    @property
    def sums(self) -> dict[str, npt.NDArray[np.float64]]:
        """Forces and torques of the last step, which no step reads, by the names of `measured`. Collective."""
        return {name: np.asarray(found.value, dtype=np.float64) for name, found in self.measured(self.parts).items()}

    @sums.setter
    def sums(self, sums: Mapping[str, npt.NDArray[np.float64]]) -> None:
        """Take back what a checkpoint has kept; what is not there is zero."""
        for name, found in self.measured(self.parts).items():
            found.value = np.asarray(sums.get(name, np.zeros(found.dim)))

    def measured(self, names: Iterable[str]) -> dict[str, Global | WallSum]:
        """Return what forces and torques on walls are summed in: ``"force on wing"``, ``"torque on wing"``."""
        every = {f"{word} on {name}": getattr(self.parts[name], word) for name in names for word in ("force", "torque")}
        return {name: found for name, found in every.items() if found is not None}

    def set_force(self, force: Sequence[float]) -> None:
        """Let all conditions know of another force that acts everywhere."""
        for part in self.parts.values():
            part.carry(force)

    def assign(self, name: str, values: Any) -> None:
        """Change the values that a condition sets.

        Raises
        ------
        SolverError
            If nothing of that name sets values, or they do not fit.
        """
        if name not in self.given:
            known = ", ".join(self.given) or "none"
            raise SolverError(f"there is no side or body {name!r}{did_you_mean(name, self.given)} (there are: {known})")
        if name not in self.parts:
            raise SolverError(f"{name}: this condition sets no values that could be changed")
        self.parts[name].assign(values)


def labelled(box: Box, boundaries: Mapping[str, Condition | Sponge], bodies: Sequence[Body]) -> Labels:
    """Return what each cell of the grid is: 0 where there is fluid; see `fluxloom.lbm.cells.labels`.

    Raises
    ------
    SolverError
        If names occur twice, all cells of a body are those of others, or they leave no fluid.
    """
    names = [*boundaries, *(body.name for body in bodies)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SolverError(f"the name {twice[0]!r} stands for more than one side or body: give each its own")
    labels = labels_of(box, [body.shape for body in bodies])
    counts = np.bincount(labels[box.inside].ravel().astype(np.int64), minlength=len(bodies) + 1)
    for number, body in enumerate(bodies):
        if not counts[number + 1]:
            alone = labels_of(box, [body.shape])[box.inside] == 1
            over = [bodies[n - 1].name for n in np.unique(labels[box.inside][alone]).tolist()]
            if over:
                raise SolverError(
                    f"body {body.name!r} has no cell: all of its cells are those of {', '.join(map(repr, over))}, as "
                    "the first body that covers a cell has it; leave it out, or give it before"
                )
    if not counts[0]:
        raise SolverError("the bodies leave no fluid in the box")
    return labels
