r"""Multigrid for steady compressible flow: stages of Runge and Kutta on a hierarchy of groups of cells.

References
----------
J. Blazek: *Computational Fluid Dynamics: Principles and Applications*, 3rd ed., Elsevier 2015, sec. 9.4.
A. Jameson: *Solution of the Euler equations for two dimensional transonic flow by a multigrid method*. Appl. Math.
Comput. 13, 1983.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, sqrt

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.steps import Reset
from fluxloom.fv.agglomeration import Coarse, Grouping, hierarchy
from fluxloom.fv.compressible_multigrid import squares
from fluxloom.solvers.compressible import CompressibleFlow
from fluxloom.solvers.compressible_levels import CoarseBalance, Passage
from fluxloom.solvers.compressible_shares import Following, Shares

__all__ = ["CYCLES", "Multigrid", "MultigridSteps"]

Array = npt.NDArray[np.float64]

CYCLES = {"V": 1, "W": 2}
"""How often each level visits the next coarser one."""


@dataclass(frozen=True)
class Multigrid:
    """How multigrid is done.

    Attributes
    ----------
    levels
        Coarse levels, at most: fewer, where groups would be too few.
    cycle
        ``"V"``: each level visits the next coarser one once; ``"W"``: twice.
    before, after
        Steps of the level before and after that.
    cfl
        Of the coarse levels, whose fluxes are of first order, with five stages made for such (``"rk5-first"``).
    smoothing
        Sweeps of Jacobi through the corrections from a coarser level.
    change
        Part of themselves by which a correction makes density and pressure fall at most.
    start
        Cycles on each coarse level before the first one of the next finer level, from the coarsest level on (full
        multigrid); 0: the cycles start on the flow itself.
    walls
        Patches where the fronts of groups start; see `fluxloom.fv.agglomeration`.
    grouping
        How cells are grouped; see there.
    settle, follow, freeze, patience
        Of a scheme with a limiter: parts of the largest residual so far at which the shares of slopes begin to follow
        the states slowly, by a part ``follow`` in a cycle, and at which they stay from then on; cycles without a lower
        residual, after which they stay as well. ``settle = 0``: they come from the states all the time. See
        `fluxloom.solvers.compressible_shares`.

    Raises
    ------
    SolverError
        If a name is unknown or a number out of range.
    """

    levels: int = 4
    cycle: str = "W"
    before: int = 1
    after: int = 1
    cfl: float = 2.5
    smoothing: int = 2
    change: float = 0.5
    start: int = 0
    walls: tuple[str, ...] = ()
    grouping: Grouping | None = None
    settle: float = 0.1
    follow: float = 0.3
    freeze: float = 1e-4
    patience: int = 200

    def __post_init__(self) -> None:
        if self.cycle not in CYCLES:
            hint = did_you_mean(self.cycle, CYCLES)
            raise SolverError(f"Multigrid: cycle {self.cycle!r} is unknown{hint} ({', '.join(CYCLES)})")
        for name in ("levels", "before", "after", "smoothing", "start"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
                raise SolverError(f"Multigrid: {name} is a whole number of at least 0, not {value!r}")
        if self.before + self.after == 0:
            raise SolverError("Multigrid: before and after are both 0: each level needs a step, set one of them to 1")
        for name, most in (("cfl", 1e300), ("change", 1.0)):
            value = getattr(self, name)
            if not (isfinite(value) and 0.0 < value < most):
                raise SolverError(f"Multigrid: {name} lies between 0 and {most:g}, not {value!r}")
        _ = self.following

    @property
    def following(self) -> Following:
        """When shares of slopes follow the states slowly, and when they stay."""
        return Following(self.settle, self.follow, self.freeze, self.patience)


class MultigridSteps:
    r"""Cycles of multigrid of a `CompressibleFlow` towards a steady state.

    Each level makes steps, hands states and residuals to the next coarser one, which makes its own and returns what
    they have changed; see `fluxloom.fv.compressible_multigrid`. Coarse levels have Rusanov's fluxes of first order
    between groups of cells, the same boundaries (what is a function of places at the centres of coarse faces), friction
    and heat from the differences between two groups. The variable of a model of turbulence stands still on them, times
    the density: only the steps of the flow itself change it.

    The steps of the flow are those of its scheme: ``time="rk5"`` with ``cfl`` about 1 is meant for them.

    Parameters
    ----------
    flow
        The flow; its states are the first ones and become the last ones.
    multigrid
        How.
    coarse
        The groups of the coarse levels, from `fluxloom.fv.agglomeration.grouped`; by default those of `hierarchy`.

    Attributes
    ----------
    levels
        The flow, and those of the coarse levels.
    coarse
        The groups of the coarse levels.
    cycles
        So far.
    highest
        Norm of the largest residual since the start, of a scheme with a limiter.
    shares
        How the limiter's shares of slopes are found.

    Raises
    ------
    SolverError
        If no level can be made, or the mesh turns.
    """

    def __init__(
        self, flow: CompressibleFlow, multigrid: Multigrid | None = None, coarse: Sequence[Coarse] | None = None
    ) -> None:
        self.flow, self.multigrid = flow, multigrid or Multigrid()
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
        self.cycles = 0
        nv, shared = flow.components, flow.volumes.shared
        self._cells = flow.volumes.cells if shared is None else shared.cells.total
        self._square = flow.context.scalar(np.zeros(nv), "square")
        self.shares, self.highest = Shares(flow, flow.w, self.multigrid.following), 0.0
        self._looks = {False: self._chain(limited=True)}

    def _chain(self, limited: bool) -> Chain:
        """Return the residual of the flow, and its squares."""
        flow, square = self.flow, self._square
        loops = [*flow.right_hand_side(flow.w, limited), Reset(square)]
        loops += [Loop(squares, flow.elements, flow.res, square, nv=flow.components)]
        return Chain(loops, name="multigrid.look")

    def _level(self, coarse: Coarse) -> CompressibleFlow:
        """Return the flow on groups of cells."""
        flow, cells = self.flow, coarse.volumes.cells
        scheme = replace(flow.scheme, order=1, time="rk5-first", cfl=self.multigrid.cfl)
        distance = np.ones(cells) if flow.turbulent else None  # nothing that needs it is computed there
        return CompressibleFlow(
            flow.context, coarse.volumes, flow.boundaries, flow.gas, scheme, distance, np.zeros(flow.components),
            balance=CoarseBalance(coarse),
        )  # fmt: skip

    # --------------------------------------------------------------------------------------- running
    def start(self) -> None:
        """Make the cycles on the coarse levels, from the coarsest to the finest one, that `Multigrid.start` wants.

        They begin with the states of the flow. Shares of slopes are live from here on. Collective.
        """
        self.shares.begin()
        self.highest = 0.0
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

    def step(self) -> None:
        """Make a cycle. Collective."""
        self._cycle(0)
        self.cycles += 1
        self.flow.steps += 1
        if not (self.flow.limiting and self.multigrid.settle):
            return
        total = self.total()
        if self.shares.renew():
            total = self.total()
        self.highest = max(self.highest, total)
        self.shares.look(total / self.highest if self.highest else 0.0)

    def norms(self) -> Array:
        """Return the roots of the mean squares of ``R`` of the states now, ``(nv,)``. Collective.

        Raises
        ------
        SolverError
            If a state is not finite; names the cell.
        """
        frozen = self.flow.frozen
        if frozen not in self._looks:
            self._looks[frozen] = self._chain(limited=not frozen)
        self._looks[frozen]()
        found = np.sqrt(np.asarray(self._square.value) / self._cells)
        if not np.isfinite(found).all():
            self.flow.check()
        return found

    def total(self) -> float:
        """Return the norm of the residual now, of mass, momentum and energy over their sizes. Collective."""
        d, square = self.flow.dimension, np.asarray(self.flow.scale.value)
        density, speed = sqrt(square[0]), sqrt(square[1])
        sizes = density * speed * np.array([1.0, *[speed] * d, speed * speed])
        return float(np.linalg.norm(self.norms()[: d + 2] / sizes))

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
            self.step()
            found.append(self.total())
        return found

    def _cycle(self, level: int) -> None:
        """Make a cycle of a level and all coarser ones."""
        flow, how = self.levels[level], self.multigrid
        last = level == len(self.levels) - 1
        for _ in range(how.before + how.after if last else how.before):
            flow.iteration()
        if last:
            return
        self.passages[level].down()
        for _ in range(CYCLES[how.cycle] if level + 2 < len(self.levels) else 1):
            self._cycle(level + 1)
        self.passages[level].up()
        for _ in range(how.after):
            flow.iteration()
