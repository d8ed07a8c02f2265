"""What guards look at in shallow water: depths, and the balance of its volume."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.guard_kernels import look_at_water
from fluxloom.run.watch import LOST, AtLeast, Balance, Finite, GuardLimits, Reduction, Rule, Watch
from fluxloom.solvers.shallow.flow import ShallowWater, Survey

__all__ = ["tsunami_watch"]

_FEW, _SPARSE = 200, 5
"""Reports up to which guards look at each, and of how many they look at one where there are more."""

_SINGLE = 1e-3
"""Part of the volume that rounding may bring or take where it is summed in single precision."""


def tsunami_watch(solver: ShallowWater, last: Callable[[], Survey], intervals: int, table: GuardLimits) -> Watch:
    """Return what guards look at in shallow water, at every report; ``last`` returns what it said."""
    look = Reduction(
        solver.context, lambda sums, least: Loop(look_at_water, solver.mesh.cells, solver.u, sums, least),
        [LOST], ["depth"],
    )  # fmt: skip
    rules: list[Rule] = [Finite()] if table.finite else []
    if table.positive:
        rules.append(AtLeast("depth", "depth", "depth", strict=False))
    if table.balance:
        part = max(table.balance, _SINGLE) if solver.u.scalar.size == 4 else table.balance
        rules.append(Balance("volume", "water", part, "came"))

    def host() -> Mapping[str, float]:
        """Return what the host knows."""
        seen = last()
        return {"volume": seen.volume, "came": seen.inflow}

    return Watch(1 if intervals <= _FEW else _SPARSE, [look], rules, [host])
