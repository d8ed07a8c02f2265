"""Supersonic outlets and inlets behind which gas is slower than sound: how many faces, in how many steps."""

from __future__ import annotations

from collections.abc import Sequence

from fluxloom.dsl.declare.dats import Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.boundary_states import GivenState, InsideState
from fluxloom.fv.guard_kernels import slow_inlets, slow_outlets
from fluxloom.run.monitor import Monitor
from fluxloom.solvers.compressible.flow import CompressibleFlow

__all__ = ["InletObserver", "OutletObserver"]


class OutletObserver(Monitor):
    """Counts faces of supersonic outlets below Mach 1: there a wave comes in, and nothing says what it brings.

    Parameters
    ----------
    flow
        The flow.
    patches
        Those with such outlets.
    """

    remembers = ("_steps", "_now", "_lowest", "_since")

    def __init__(self, flow: CompressibleFlow, patches: Sequence[str]) -> None:
        self._flow, self._patches = flow, patches
        self._count, self._least = flow.context.scalar(0.0, "slow"), flow.context.scalar(1.0, "slowest")
        self._look = Chain([
            Reset(self._count), Reset(self._least, 1.0),
            Loop(slow_outlets, flow.boundary, flow.kind, flow.face[flow.edge[0]], flow.w[flow.behind[0]], self._count,
                 self._least, gamma=flow.gas.gamma, which=flow.formulas.index(InsideState()), d=flow.dimension,
                 moving=int(flow.rotation is not None)),
        ], name="outlets")  # fmt: skip
        self._steps, self._now, self._lowest, self._since = 0, 0, 1.0, flow.steps

    def stepped(self) -> None:
        """Count. Collective."""
        self._look()
        count, least = Global.read_all([self._count, self._least])
        self._now = int(count)
        self._steps += self._now > 0
        self._lowest = min(self._lowest, float(least))

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return how many there were, and whether there still are."""
        if not self._steps:
            return ()
        names = ", ".join(self._patches)
        now = f"{self._now:,} faces in the last step" if self._now else "none in the last step"
        return ((
            "outlets",
            f"gas left slower than sound, or entered, through supersonic outlets ({names}) in {self._steps:,} of "
            f"{self._flow.steps - self._since:,} steps, at Mach {self._lowest:.3g} at least; {now}: what comes in "
            'there is not given; take type = "outlet" or "far-field"',
        ),)  # fmt: skip


class InletObserver(Monitor):
    """Counts, at the end, faces of supersonic inlets with slow gas behind: a shock that came upstream cannot leave.

    Parameters
    ----------
    flow
        The flow.
    patches
        Those with such inlets.
    """

    def __init__(self, flow: CompressibleFlow, patches: Sequence[str]) -> None:
        self._flow, self._patches, self._now = flow, patches, 0
        self._count = flow.context.scalar(0.0, "slow")

    def finish(self) -> None:
        """Count. Collective."""
        flow = self._flow
        self._count.value = 0.0
        Loop(slow_inlets, flow.boundary, flow.kind, flow.w[flow.behind[0]], self._count, gamma=flow.gas.gamma,
             which=flow.formulas.index(GivenState()), d=flow.dimension)()  # fmt: skip
        self._now = int(self._count.value)

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return how many there are."""
        if not self._now:
            return ()
        names = ", ".join(self._patches)
        return ((
            "inlets",
            f"behind {self._now:,} faces of supersonic inlets ({names}) gas is slower than sound: a shock stands there "
            'and what is given is not what enters; put the inlet further ahead, or take type = "far-field"',
        ),)  # fmt: skip
