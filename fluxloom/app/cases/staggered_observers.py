"""What a case of flow on a staggered grid looks at while it runs: forces on sides."""

from __future__ import annotations

from collections.abc import Sequence

from fluxloom.run.monitor import Monitor
from fluxloom.solvers.staggered import Staggered
from fluxloom.solvers.staggered_forces import StaggeredForces

__all__ = ["StaggeredForcesObserver"]


class StaggeredForcesObserver(Monitor):
    """The force on some sides as columns."""

    def __init__(self, flow: Staggered, name: str, sides: Sequence[str]) -> None:
        self.name, self.forces = name, StaggeredForces(flow, sides)

    def columns(self) -> dict[str, float]:
        """Return the components."""
        return {f"{self.name}.force_{'xyz'[k]}": float(value) for k, value in enumerate(self.forces.now())}

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return them in one row."""
        return ((self.name, "force " + ", ".join(f"{value:.7g}" for value in self.forces.now())),)
