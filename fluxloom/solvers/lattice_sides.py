"""Conditions of a lattice Boltzmann flow: those of the sides of its box and of the bodies in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.steps import Reset
from fluxloom.lbm.boundaries import Body, Condition, Part, parts_of
from fluxloom.lbm.labels import labels_of
from fluxloom.lbm.space import Space

__all__ = ["Conditions"]


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

    Raises
    ------
    SolverError
        If a condition does not fit, names occur twice, a body has no cell or leaves no fluid, or parts of ranks are
        too thin.

    Attributes
    ----------
    labels
        0 where there is fluid, over the grid; see `fluxloom.lbm.labels`.
    parts
        Conditions at run time, by name, in the order in which they run.
    """

    def __init__(self, space: Space, boundaries: Mapping[str, Condition], bodies: Sequence[Body]) -> None:
        self.space = space
        self._check_names(boundaries, bodies)
        if boundaries or bodies:
            space.check_cut()
        self.labels: npt.NDArray[np.int16] = labels_of(space.box, [body.shape for body in bodies])
        self._check_labels(bodies)
        self.parts: dict[str, Part] = parts_of(space, boundaries, bodies, self.labels)

    @staticmethod
    def _check_names(boundaries: Mapping[str, Condition], bodies: Sequence[Body]) -> None:
        names = [*boundaries, *(body.name for body in bodies)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SolverError(f"the name {twice[0]!r} stands for more than one side or body: give each its own")

    def _check_labels(self, bodies: Sequence[Body]) -> None:
        inside = self.labels[self.space.box.inside]
        counts = np.bincount(inside.ravel().astype(np.int64), minlength=len(bodies) + 1)
        for number, body in enumerate(bodies):
            if not counts[number + 1]:
                raise SolverError(f"body {body.name!r} has no cell: it is outside of the box, or thinner than a cell")
        if not counts[0]:
            raise SolverError("the bodies leave no fluid in the box")

    def loops(self, parity: int) -> list[Loop | Reset]:
        """Return what runs before a step."""
        return [step for part in self.parts.values() for step in part.loops(parity)]

    def begin(self, parity: int) -> None:
        """Do what comes once, before the first step from new populations."""
        for part in self.parts.values():
            for loop in part.begin(parity):
                loop()

    def force_on(self, name: str) -> npt.NDArray[np.float64]:
        """Return the force of the fluid on a side or a body in the last step.

        Raises
        ------
        SolverError
            If nothing of that name measures a force.
        """
        measured = [key for key, part in self.parts.items() if part.force is not None]
        part = self.parts.get(name)
        if part is None or part.force is None:
            raise SolverError(
                f"no force is measured on {name!r}{did_you_mean(name, measured)} (measured: "
                f"{', '.join(measured) or 'none'}): give its wall measure=True"
            )
        return np.asarray(part.force.value, dtype=np.float64)
