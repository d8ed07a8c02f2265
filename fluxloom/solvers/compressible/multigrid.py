r"""Multigrid for steady compressible flow: implicit or explicit stages on a hierarchy of groups of cells.

References
----------
J. Blazek: *Computational Fluid Dynamics: Principles and Applications*, 3rd ed., Elsevier 2015, sec. 9.4.
A. Jameson: *Solution of the Euler equations for two dimensional transonic flow by a multigrid method*. Appl. Math.
Comput. 13, 1983.
R. C. Swanson, E. Turkel, C.-C. Rossow: *Convergence acceleration of Runge-Kutta schemes for solving the Navier-Stokes
equations*. J. Comput. Phys. 224, 2007 (implicit stages as the smoother).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import isfinite, sqrt

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.multigrid import squares
from fluxloom.fv.geometry.agglomeration import Coarse, hierarchy
from fluxloom.linalg.vectors import copy
from fluxloom.solvers.compressible.cycles import Multigrid
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.levels import CoarseResidual, Passage
from fluxloom.solvers.compressible.limiter_freezing import LimiterFollowing
from fluxloom.solvers.compressible.mixing import Mixing

__all__ = ["MultigridSteps"]

Array = npt.NDArray[np.float64]

_WORST = 4.0
"""Residual over the larger one of the first and the one before the cycle, above which a cycle is refused."""
_BACK, _LESS, _AIM, _AGAIN = 0.5, 0.7, 1.2, 1.1
"""Factors of the CFL numbers: after a refused cycle; at least after another, where the residual grows by more than
``_AIM``; at most, until they are those that were given."""
_LEAST = 1e-3


class MultigridSteps:
    r"""Cycles of multigrid of a `CompressibleFlow` towards a steady state.

    Each level makes steps, hands states and residuals to the next coarser one, which makes its own and returns what
    they have changed; see `fluxloom.fv.compressible.multigrid`. Coarse levels have fluxes of first order between groups
    of cells, the same boundaries (what is a function of places at the centres of coarse faces), friction and heat from
    the differences between two groups. The variable of a model of turbulence stands still on them, times the density:
    only the steps of the flow itself change it.

    CFL numbers fall, on all levels, where the residual grows by more than a fifth in a cycle, and rise again to those
    that were given. A cycle after which it is not finite, or four times as large as that before and the first one, is
    refused: the states are those before it, and the next one has half the CFL numbers.

    Parameters
    ----------
    flow
        The flow; its states are the first ones and become the last ones.
    multigrid
        How.
    coarse
        The groups of the coarse levels, from `fluxloom.fv.geometry.agglomeration.grouped`; by default those of
        `hierarchy`.

    Attributes
    ----------
    levels
        The flow, and those of the coarse levels.
    coarse
        The groups of the coarse levels.
    cycles, refused
        So far; and how many of them were refused.
    part
        Of the CFL numbers that were given, in the next cycle.
    highest
        Norm of the largest residual since the start, of a scheme with a limiter.
    shares
        How the limiter values are found.

    Raises
    ------
    SolverError
        If no level can be made, or the mesh turns.
    """

    forgets = ("levels", "passages", "smoothers", "coarse")
    remembers = ("cycles", "refused", "highest", "_first", "_last", "pacing")

    def __init__(
        self, flow: CompressibleFlow, multigrid: Multigrid | None = None, coarse: Sequence[Coarse] | None = None
    ) -> None:
        self.flow, self.multigrid = flow, multigrid or Multigrid()
        flow.given.require_steady()
        if flow.rotation is not None:
            raise SolverError("multigrid: the mesh turns, which coarse levels do not; make explicit or implicit steps")
        how = self.multigrid
        self.coarse = list(coarse or hierarchy(flow.volumes, how.levels, how.walls, how.grouping))
        if not self.coarse:
            raise SolverError("multigrid: no coarse level: the cells are too few, or levels is 0; make explicit steps")
        self.levels = [flow, *(self._level(coarse) for coarse in self.coarse)]
        self.passages = [
            Passage(fine, coarse, found, how.smoothing, how.change)
            for fine, coarse, found in zip(self.levels[:-1], self.levels[1:], self.coarse, strict=True)
        ]
        self.smoothers = [how.smoother.build(level) for level in self.levels]
        self.cycles, self.refused, self.part = 0, 0, 1.0
        self._first = self._last = 0.0
        nv, self._cells = flow.components, flow.volumes.total
        self._square = flow.context.scalar(np.zeros(nv), "square")
        self.shares, self.highest = LimiterFollowing(flow, flow.w, self.multigrid.following), 0.0
        self._looks = {False: self._chain(limited=True)}
        kept = flow.context.dat(flow.elements, name="kept", shape=(nv,), layout=flow.w.layout)
        self._keep = Loop(copy, flow.elements, flow.w, kept, systems=nv)
        self._restore = Loop(copy, flow.elements, kept, flow.w, systems=nv)
        self.mixing = Mixing(flow, how.recall, self._measure) if how.recall and not flow.turbulent else None

    @property
    def pacing(self) -> float:
        """The part of the CFL numbers, which steps of all levels take."""
        return self.part

    @pacing.setter
    def pacing(self, part: float) -> None:
        """Take back what a checkpoint has kept."""
        self._pace(part)

    def _chain(self, limited: bool) -> Chain:
        """Return the residual of the flow, and its squares."""
        flow, square = self.flow, self._square
        loops = [*flow.right_hand_side(flow.w, limited), Reset(square)]
        loops += [Loop(squares, flow.elements, flow.res, square, nv=flow.components)]
        return Chain(loops, name="multigrid.look")

    def _level(self, coarse: Coarse) -> CompressibleFlow:
        """Return the flow on groups of cells."""
        flow, cells, smoother = self.flow, coarse.volumes.cells, self.multigrid.smoother
        distance = np.ones(cells) if flow.turbulent else None  # nothing that needs it is computed there
        return CompressibleFlow(
            flow.context, coarse.volumes, flow.boundaries, flow.gas, smoother.coarse_scheme(flow.scheme), distance,
            np.zeros(flow.components), balance=CoarseResidual(coarse, smoother.explicit),
        )  # fmt: skip

    # --------------------------------------------------------------------------------------- running
    def start(self) -> None:
        """Make the cycles on the coarse levels, from the coarsest to the finest one, that `Multigrid.start` wants.

        They begin with the states of the flow. Shares of gradients are live from here on, and CFL numbers those given.
        Collective.
        """
        self.shares.begin()
        if self.mixing is not None:
            self.mixing.forget()
        self.highest = self._first = self._last = 0.0
        self._pace(1.0)
        if not self.multigrid.start:
            return
        for passage in self.passages:
            passage.down()
        for passage in self.passages:
            passage.sources()
        for k in range(len(self.levels) - 1, 0, -1):
            for _ in range(self.multigrid.start):
                self._cycle(k)
            self.passages[k - 1].hand_down()

    def step(self) -> float:
        """Make a cycle, or try one; return the norm of the residual after it, see `total`. Collective.

        Raises
        ------
        SolverError
            If the states before it are not finite, or cycles are refused until the CFL numbers are a thousandth of
            those given.
        """
        before = self._last or self.total()
        if not self._first:
            self._first = before
            if self.mixing is not None:
                self.mixing.weigh(1.0 / self._sizes())
        self._keep()
        self._cycle(0)
        self.cycles += 1
        self.flow.steps += 1
        total = self._measure()
        if not total <= _WORST * max(before, self._first):
            return self._refuse(total / self._first)
        self._pace(min(1.0, self.part * min(_AGAIN, max(_LESS, _AIM * before / total if total else _AGAIN))))
        if self.flow.limiting and self.multigrid.relax_below:
            if self.shares.renew():
                total = self.total()
            self.highest = max(self.highest, total)
            self.shares.look(total / self.highest if self.highest else 0.0)
        self._last = self._mixed(total)
        return self._last

    def _mixed(self, total: float) -> float:
        """Mix the states of the last cycles where the residual is a smooth function of them; return its norm."""
        if self.mixing is None:
            return total
        if self.flow.limiting and self.shares.weight > 0.0:
            self.mixing.forget()
            return total
        return self.mixing.step(total)

    def _refuse(self, growth: float) -> float:
        """Take the states before the cycle again, and lower CFL numbers."""
        self._restore()
        self.refused += 1
        if self.mixing is not None:
            self.mixing.forget()
        text = f"multigrid: cycle {self.cycles} is refused, its residual is {growth:.3g} of the first one"
        if self.part * _BACK < _LEAST:
            raise SolverError(
                f"{text}, with {self.part:.2g} of the CFL numbers: take fewer levels, make some explicit steps before "
                "(CompressibleFlow.iterate), or look for a boundary that does not fit"
            )
        self._pace(_BACK * self.part)
        logging.getLogger("fluxloom").warning("%s; CFL numbers are %.3g of those given now", text, self.part)
        self._last = self.total()
        return self._last

    def _pace(self, part: float) -> None:
        """Take a part of the CFL numbers that were given."""
        if part != self.part:
            self.part = part
            for smoother in self.smoothers:
                smoother.set_cfl(part)

    def norms(self) -> Array:
        """Return the roots of the mean squares of ``R`` of the states now, ``(nv,)``. Collective.

        Raises
        ------
        SolverError
            If a state is not finite; names the cell.
        """
        found = self._norms()
        if not np.isfinite(found).all():
            self.flow.check()
        return found

    def _norms(self) -> Array:
        frozen = self.flow.frozen
        if frozen not in self._looks:
            self._looks[frozen] = self._chain(limited=not frozen)
        self._looks[frozen]()
        return np.sqrt(np.asarray(self._square.value) / self._cells)

    def total(self) -> float:
        """Return the norm of the residual now, of mass, momentum and energy over their sizes. Collective.

        Raises
        ------
        SolverError
            As `norms`.
        """
        return self._size(self.norms())

    def _measure(self) -> float:
        """Return `total`, whether it is finite or not."""
        with np.errstate(invalid="ignore"):
            return self._size(self._norms())

    def _size(self, norms: Array) -> float:
        sizes = self._sizes()[: self.flow.dimension + 2]
        return float(np.linalg.norm(norms[: sizes.size] / sizes))

    def _sizes(self) -> Array:
        """Return how large the components of residuals are, ``(nv,)``; that of a model's is not known, so 1."""
        d, square = self.flow.dimension, np.asarray(self.flow.scale.value)
        density, speed = sqrt(square[0]), sqrt(square[1])
        return density * speed * np.array([1.0, *[speed] * d, speed * speed, *[1.0] * self.flow.turbulent])

    def lessened(self) -> int:
        """Return how many corrections of cells of the flow were made smaller since the last look. Collective."""
        count = self.passages[0].lessened
        found, count.value = int(count.value), 0.0
        return found

    def solve(self, drop: float = 1e-8, iterations: int = 1000) -> list[float]:
        """Make cycles until `total` is a part ``drop`` of the first one; return it after each, the first one too.

        The first one is that of the states before `start`, which this calls. It may end before with ``iterations``
        cycles; look at the last number. Collective.

        Raises
        ------
        SolverError
            If a state is not finite, or numbers are out of range.
        """
        if not (isfinite(drop) and 0.0 < drop < 1.0 and iterations >= 0):
            raise SolverError(f"multigrid: drop lies between 0 and 1, iterations from 0 on: not {drop}, {iterations}")
        found = [self.total()]
        self.start()
        while len(found) <= iterations and found[-1] > drop * found[0]:
            found.append(self.step())
        return found

    def _cycle(self, level: int) -> None:
        """Make a cycle of a level and all coarser ones."""
        step, how = self.smoothers[level].step, self.multigrid
        last = level == len(self.levels) - 1
        for _ in range(how.before + how.after if last else how.before):
            step()
        if last:
            return
        self.passages[level].down()
        for _ in range(how.cycle.visits if level + 2 < len(self.levels) else 1):
            self._cycle(level + 1)
        self.passages[level].up()
        for _ in range(how.after):
            step()
