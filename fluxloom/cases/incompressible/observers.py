"""What a case of incompressible flow looks at while it runs: averages, scalars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from fluxloom.run.monitor import Monitor
from fluxloom.solvers.incompressible.flow import Incompressible

__all__ = [
    "ScalarObserver",
]


class ScalarObserver(Monitor):
    """A scalar as a field, its content and what leaves through patches by diffusion as columns."""

    def __init__(self, flow: Incompressible, name: str, patches: Sequence[str]) -> None:
        self._flow, self.name, self._patches = flow, name, tuple(patches)

    def columns(self) -> dict[str, float]:
        """Return the content, and what leaves by diffusion through each patch with a value or a flux."""
        scalar = self._flow.scalars[self.name]
        found = {f"{self.name}.total": scalar.content().total}
        return found | {f"{self.name}.flux_{patch}": -scalar.flux(patch).diffusive for patch in self._patches}

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the values of the cells."""
        return {self.name: self._flow.scalars[self.name].values()}

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return the range and the content."""
        content = self._flow.scalars[self.name].content()
        text = f"{content.least:.6g} to {content.largest:.6g}, {content.total:.9g} in all"
        return ((self.name, text), *self.choices())

    def choices(self) -> Sequence[tuple[str, str]]:
        """Return how it is carried."""
        free = self._flow.scalars[self.name].bounded is None
        how = "symmetric operators, not bounded" if free else "bounded, by flux correction"
        return ((f"{self.name}.scheme", f"{how} (scalar.{self.name}.bounded)"),)
