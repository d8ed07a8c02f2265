r"""Implicit steps towards a steady compressible flow: Newton's method with pseudo-time, or sweeps alone."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.newton_kernels import keep, local_rate, moved, shorten, sizes, unsteady
from fluxloom.fv.geometry.volumes import Sides
from fluxloom.linalg.status import Status
from fluxloom.linalg.vectors import copy
from fluxloom.solvers.compressible.cycles import Implicit, ImplicitStep
from fluxloom.solvers.compressible.limiter_freezing import LimiterFollowing
from fluxloom.solvers.compressible.newton_system import NewtonSystem
from fluxloom.solvers.compressible.sweeps import Sweeps

if TYPE_CHECKING:
    from fluxloom.solvers.compressible.flow import CompressibleFlow

__all__ = ["Implicit", "ImplicitStep", "SteadySteps"]

Array = npt.NDArray[np.float64]

_WORST = 2.0
"""Balance of a step over the residual before it, above which the step is refused."""
_RISE = 10.0
"""How far above the first residual others count as the largest so far."""
_BACK, _LESS, _HARD, _AGAIN = 0.5, 0.7, 0.8, 1.1
"""Factors of the CFL number: after a refused step; at least after another; after GMRES did not end; of the sweeps'."""
_AIM = 1.2
"""The CFL number falls where the residual grows by more than this."""
_GOOD = 0.5
"""Balance of a step over the residual before it, below which the step did what its linear system had promised."""
_LEAST_CFL = 1e-3
_SHORTER, _QUARTER = 2, 0.25
"""How often increments are made shorter before a step is refused, and to which part of themselves."""
_LEAST_WEIGHT, _TINY = 1e-3, 1e-300
"""How little the equation of a model counts in GMRES at least."""
_PART = 1e-6
"""Part of perturbations with a model of turbulence, whose variable has most of them: the others move by less."""
_FAR = 1e-2
"""Part of the largest residual above which sweeps along fronts need some vectors of GMRES in reserve."""
_MANY, _FEW = 0.5, 0.125
"""Parts of the vectors of GMRES: a product has twice the sweeps after a step with more, half of them with less."""


class SteadySteps:
    r"""Implicit steps of a `CompressibleFlow` towards a steady state.

    A step solves

    .. math:: \Big(\frac{V}{\Delta t} \frac{\partial U}{\partial w} - \frac{\partial R}{\partial w}\Big) z = R(w)

    with steps ``dt`` of each cell's own, ``dt = cfl V / (sum A lambda / 2)``. With ``krylov`` the derivative is that of
    the full residual (Newton's method), and converges as fast as the residual is smooth: limiters have kinks, so the
    limiter values follow the states slowly in time, and stay at last (`LimiterFollowing`); what converges then is the
    scheme with these shares. With ``krylov = 0`` the derivative is that of a scheme of first order, and convergence is
    linear.

    The CFL number of Newton's steps follows from the first one on what a step has achieved. Its balance

    .. math:: b = |R(w + z) - V / \Delta t\, \partial U / \partial w\, z| \, / \, |R(w)|

    would be what GMRES has left, were the flow linear and no increment cut:

    - GMRES got as far as was asked, `b` is at most a half, and the residual did not grow by more than 1.2: the step did
      what was promised, and the CFL number grows by ``growth``, whether the residual falls or not;
    - else it changes with the residual, by 1.2 over the ratio of the residuals, between 0.7 and ``growth``;
    - GMRES did not get as far as was asked: it falls to 0.8 of itself;
    - `b` is above 2, or not finite: the step is refused, and made again with half the CFL number. With ``wavefront``
      increments are made shorter before.

    So it finds the steps that the sweeps can precondition by itself, with residuals that stay where they are while a
    boundary layer grows or heat is conducted, too. With ``switch`` below 1 sweeps alone make the steps until the
    residual has fallen by it, with the CFL number that was given, or less where the residual grows.

    Parameters
    ----------
    flow
        The flow; its states are the first ones and become the last ones.
    implicit
        How.

    Attributes
    ----------
    cfl
        Of the next step.
    total
        Norm of the residual now, its components over their sizes, as in `ImplicitStep`.
    highest
        The largest one since the begin.
    shares
        How the limiter values are found.
    preconditioning
        Sweeps in a product of GMRES.

    References
    ----------
    W. A. Mulder, B. van Leer: *Experiments with implicit upwind methods for the Euler equations*. J. Comput. Phys. 59,
    1985 (steps that grow as the residual falls).
    M. A. Ceze, K. J. Fidkowski: *Pseudo-transient continuation, solution update methods, and CFL strategies for DG
    discretizations of the RANS-SA equations*. AIAA 2013-2686 (shares of steps and their balance).
    """

    forgets = ("base", "trial", "waves")
    remembers = ("cfl", "preconditioning", "total", "highest", "_most", "_now", "_begun", "_newton")

    def __init__(self, flow: CompressibleFlow, implicit: Implicit | None = None) -> None:
        self.flow, self.implicit = flow, implicit or Implicit()
        flow.given.require_steady()
        context, nv, over = flow.context, flow.components, flow.elements
        self.cfl = self.implicit.cfl
        self.cells = flow.volumes.total
        self.sweeps = Sweeps(flow, self.implicit.sweeps, self.implicit.wavefront)
        self.preconditioning = self.implicit.sweeps
        self.base, self.trial = (
            context.dat(over, name=name, shape=(nv,), layout=flow.w.layout) for name in ("base", "trial")
        )
        self.waves = context.dat(over, name="waves")
        self.rows, self.columns = (context.scalar(np.ones(nv), name) for name in ("rows", "columns"))
        self.share, self.norm, self.left = (
            context.scalar(value, name) for value, name in ((1.0, "share"), (np.zeros(nv), "norm"), (0.0, "left"))
        )
        self.total = self.highest = self._most = 0.0
        self._now = np.ones(nv)
        self._chains()
        self.weights = context.scalar(np.ones(nv), "weights")
        self._krylov = None if self.implicit.krylov == 0 else NewtonSystem(
            flow, self.sweeps, self.weights, self.columns, self.base, self.trial, self._find, self.implicit.krylov,
            self.cells, _PART if self.implicit.wavefront and flow.turbulent else 1e-7,
        )  # fmt: skip
        self._begun = self._newton = False

    def _chains(self) -> None:
        flow, over, z, trial = self.flow, self.flow.elements, self.sweeps.z, self.trial
        nv: dict[str, Any] = {"nv": flow.components}
        both: dict[str, Any] = {"d": flow.dimension, **nv}
        copies: dict[str, Any] = {"systems": flow.components}
        self.shares = LimiterFollowing(flow, trial, self.implicit.following)
        self._finds = {False: Chain(flow.right_hand_side(trial), name="implicit.residual")}
        self._judge = Chain([
            Reset(self.norm), Reset(self.left),
            Loop(unsteady, over, flow.w, z, flow.res, self.sweeps.rate, self.rows, self.norm, self.left,
                 gamma=flow.gas.gamma, **both),
        ], name="implicit.judge")  # fmt: skip
        self._pace = Loop(local_rate, over, self.waves, self._even(), flow.volume, self.sweeps.rate, cfl=self.cfl)
        self._copy = Loop(copy, over, flow.w, trial, **copies)
        self._keep = Loop(keep, over, flow.res, flow.speed, self.base, self.waves, **nv)
        self._linearise = Chain([self._pace, *self.sweeps.linearise()], fuse=False, name="implicit.linearise")
        self._right = Loop(copy, over, self.base, self.sweeps.r, **copies)
        self._move = Chain([
            Reset(self.share, 1.0), Loop(moved, over, flow.w, z, trial, self.share, most=self.implicit.change, **both),
        ], name="implicit.move")  # fmt: skip
        self._shorten = Loop(shorten, over, z, factor=_QUARTER, **nv)
        self._accept = Loop(copy, over, trial, flow.w, **copies)

    def _even(self) -> Dat:
        """Return by what waves through a thin cell count, with fronts as through a cube of its volume; else 1.

        Of a plane mesh that is extruded only waves in the plane count, and cubes are squares.
        """
        flow, cv = self.flow, self.flow.volumes
        found = np.ones(cv.elements)
        sides, d = Sides.of(cv), cv.dimension
        area, sizes = sides.sum(cv.area[sides.face]), cv.volumes[: sides.cells]
        if flow.axis is not None:
            ends = sides.sum((cv.area * np.abs(cv.normals @ flow.axis))[sides.face])
            found[: sides.cells] = 1.0 - ends / area
            area, sizes, d = (area - ends) * 0.5 * ends / sizes, 0.5 * ends, 2
        if self.implicit.wavefront:
            found[: sides.cells] *= 2.0 * d * sizes ** ((d - 1.0) / d) / area
        return flow.spaces.elements.dat(found, "even")

    # --------------------------------------------------------------------------------------- running
    def begin(self) -> ImplicitStep:
        """Look at the states of the flow anew, as at the start: sizes, residual, and the first CFL number."""
        self._sizes()
        self.cfl, self.preconditioning = self.implicit.cfl, self.implicit.sweeps
        self.shares.begin()
        self._before()
        norms = self._norms()
        self.total = self._total(norms)
        if not isfinite(self.total):
            self.flow.check()
            raise SolverError("implicit steps: the residual of the first states is not finite: look at the boundaries")
        self._most = _RISE * self.total
        self.highest, self._begun, self._newton, self._now = self.total, True, False, norms
        return ImplicitStep(norms, self.total, self.cfl, 0.0)

    def step(self) -> ImplicitStep:
        """Make a step, or try one. Collective.

        Raises
        ------
        SolverError
            If steps are refused until the CFL number is below 0.001.
        """
        if not self._begun:
            self.begin()
        cfl, before, live = self.cfl, self.total, self.shares.weight
        newton = self._newton = self.newton
        self._keep()
        self._pace.set(cfl=cfl)
        self._linearise()
        solved = self._solve(newton)
        self._move()
        self._find()
        self._judge()
        share, norms, left = self._look()
        if self.implicit.wavefront:
            share, norms, left = self._search(share, norms, left)
        total = self._total(norms)
        self.flow.steps += 1
        if not (isfinite(solved.residual) and left <= _WORST * before):
            self._refuse()
            return ImplicitStep(self._norms(), self.total, cfl, 0.0, solved.iterations, solved.residual, live)
        self._accept()
        ratio, balance = (total / before, left / before) if before else (0.0, 0.0)
        self.cfl = self._next(cfl, ratio, balance, solved, newton)
        if self.shares.renew():
            self._before()
            norms = self._norms()
            total = self._total(norms)
        self._now = norms
        self.total, self.highest = total, max(self.highest, min(total, self._most))
        self.shares.look(total / self.highest if self.highest else 0.0)
        return ImplicitStep(norms, total, cfl, share, solved.iterations, solved.residual, live)

    @property
    def newton(self) -> bool:
        """Whether the next step is one of Newton's; after one of them it is until the residual has grown much.

        With limiter values that stay it is: sweeps did not get further with those that follow.
        """
        switch = self.implicit.switch
        if switch >= 1.0:
            return self._krylov is not None
        level = sqrt(switch) if self._newton else switch
        return self._krylov is not None and (self.total <= level * self.highest or self.shares.weight == 0.0)

    def _next(self, cfl: float, ratio: float, balance: float, solved: Status, newton: bool) -> float:
        """Return the next CFL number after a step with a ratio of the residuals and a balance; choose the sweeps."""
        how = self.implicit
        factor = max(_LESS, _AIM / ratio) if ratio > 0.0 else how.growth
        if ratio <= _AIM and balance <= _GOOD:
            factor = how.growth
        if not newton:
            return min(how.cfl, min(factor, _AGAIN) * cfl)
        most = max(how.sweeps, how.sweeps_max)
        if solved.iterations > _MANY * how.krylov:
            self.preconditioning = min(2 * self.preconditioning, most)
        elif solved.iterations < _FEW * how.krylov:
            self.preconditioning = max(self.preconditioning // 2, how.sweeps)
        factor = min(factor, how.growth if solved.residual <= how.tolerance else _HARD)
        if how.wavefront and solved.iterations > _MANY * how.krylov and self.total > _FAR * self.highest:
            factor = min(factor, 1.0)  # there are no more sweeps to take
        return min(how.cfl_max, factor * cfl)

    def solve(self, drop: float = 1e-10, iterations: int = 1000) -> list[float]:
        """Make steps until the residual is a part ``drop`` of the first one; return its norms, the first one too.

        It may end before with ``iterations`` steps; look at the last norm. Collective.
        """
        found = [self.begin().total]
        while len(found) <= iterations and found[-1] > drop * found[0]:
            found.append(self.step().total)
        return found

    def _solve(self, newton: bool) -> Status:
        if newton and self._krylov is not None:
            self.sweeps.sweeps = self.preconditioning
            self._balance()
            return self._krylov.solve(self.implicit.tolerance)
        self.sweeps.sweeps = self.implicit.sweeps
        self._right()
        self.sweeps.solve()
        return Status(True, 0, 0.0, 1.0, np.zeros(1), "converged")

    def _search(self, share: float, norms: Array, left: float) -> tuple[float, Array, float]:
        """Take a quarter of the increments, and of that, where the balance of a step is too bad; return as `_look`."""
        for _ in range(_SHORTER):
            if left <= _WORST * self.total:
                break
            self._shorten()
            self._move()
            self._find()
            self._judge()
            _, norms, left = self._look()
            share *= _QUARTER
        return share, norms, left

    def _balance(self) -> None:
        """Weigh the equation of a model of turbulence in GMRES no more than the others together.

        Its residual may be a thousand times that of the flow; what GMRES leaves of it would then be a residual of the
        flow as large, in each step anew.
        """
        weights = np.array(self.rows.value)
        if self.flow.turbulent and self.implicit.wavefront:
            found = self._now * weights
            ratio = float(np.linalg.norm(found[:-1])) / max(float(found[-1]), _TINY)
            weights[-1] *= min(1.0, max(ratio, _LEAST_WEIGHT))
        self.weights.value = weights

    def _find(self) -> None:
        """Find the residual of the states that are tried."""
        frozen = self.flow.frozen
        if frozen not in self._finds:
            loops = self.flow.right_hand_side(self.trial, limited=not frozen)
            self._finds[frozen] = Chain(loops, name="implicit.residual")
        self._finds[frozen]()

    def _before(self) -> None:
        """Find the residual of the states of the flow."""
        self._copy()
        self._find()
        self._judge()

    def _refuse(self) -> None:
        self.cfl *= _BACK
        if self.cfl < _LEAST_CFL:
            self.flow.check()
            raise SolverError(
                f"implicit steps: refused down to a CFL number of {self.cfl:g}; make some explicit steps before "
                "(CompressibleFlow.iterate), take a lower cfl or growth, or look for a boundary that does not fit"
            )
        self._before()

    def _sizes(self) -> None:
        """Find how large the components of states and residuals are, from means over the cells."""
        flow, d = self.flow, self.flow.dimension
        sums = flow.context.scalar(np.zeros(4), "sizes")
        Loop(sizes, flow.elements, flow.w, flow.volume, sums, nv=flow.components, d=d)()
        volume, mass, pressure, square = np.asarray(sums.value)
        rho, p = mass / volume, pressure / volume
        sound = sqrt(flow.gas.gamma * p / rho)
        state, flux = np.full(flow.components, sound), np.full(flow.components, rho * sound * sound)
        state[0], state[1 + d], flux[0], flux[1 + d] = rho, p, rho * sound, rho * sound**3
        if flow.turbulent and flow.gas.viscosity is not None:
            temperature = p / (rho * flow.gas.constant)
            nu = float(flow.gas.viscosity.at(temperature)) / rho
            state[-1] = max(sqrt(square / volume), nu)
            flux[-1] = rho * sound * state[-1]
        self.rows.value, self.columns.value = 1.0 / flux, 1.0 / state

    def _look(self) -> tuple[float, Array, float]:
        share, norms, left = Global.read_all([self.share, self.norm, self.left])
        return float(share), self._mean(norms), sqrt(float(left) / self.cells)

    def _norms(self) -> Array:
        return self._mean(self.norm.value)

    def _mean(self, squares: Any) -> Array:
        return np.sqrt(np.asarray(squares) / self.cells)

    def _total(self, norms: Array) -> float:
        return float(np.linalg.norm(norms * np.asarray(self.rows.value)))
