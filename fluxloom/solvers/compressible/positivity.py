"""Steps of a compressible flow in which density and pressure stay above 0, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from fluxloom.core.errors import Divergence
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.kernels import advance, common_step, last_stage, local_step
from fluxloom.fv.compressible.positivity import (
    clip_cells,
    differences,
    lessened,
    lessened_outside,
    outside_differences,
    replaced,
    shares,
    tally,
)
from fluxloom.fv.time_schemes import SSPRK3
from fluxloom.solvers.compressible.given import GivenValues
from fluxloom.solvers.compressible.residual import ResidualFlow, ResidualLoops
from fluxloom.solvers.compressible.values import left

__all__ = ["Positivity"]

_SSP = SSPRK3().stages
_CFL = 0.8
"""Of guarded steps, at most: of a stage with Rusanov's flux alone it is physical, unless waves of neighbours differ."""
_TRIES, _HALVINGS = 3, 12
"""How often a step is made again, each time with more cells guarded, before it is halved; and how often that."""


class GuardedFlow(ResidualFlow, Protocol):
    """A flow as the steps see it that keep its density and pressure above 0: its dats, and how it goes on in time."""

    w: Dat
    kept: Dat
    step: Dat
    dt: Global
    norm: Global
    clipped_cells: Global
    time: float
    steps: int
    cfl: float
    limits: int
    frozen: bool
    given: GivenValues

    @property
    def balanced(self) -> ResidualLoops:
        """The loops that find what changes the states."""
        ...

    @property
    def last(self) -> Dat:
        """The states that the last stage of an explicit step begins with."""
        ...

    def right_hand_side(self, w: Dat, limited: bool = True) -> Sequence[Loop | Reset]:
        """Return the loops that find `res` and `speed` of some states."""
        ...

    def leaving(self) -> Callable[[float, bool], Loop] | None:
        """Return what makes the loop that adds what leaves in a stage."""
        ...

    def check(self) -> None:
        """Raise `Divergence` where states are lost."""
        ...


class Positivity:
    """Makes the steps of a flow whose cells would else lose their density or pressure.

    A step after which a cell has lost them is taken back. It is made again, and so are those that follow, by the stages
    of Shu and Osher with guarded cells (`fluxloom.fv.compressible.positivity`), until no cell is guarded any more.
    Where that is not enough the step is halved. What the boundary lets through is what cells lose: the flux out of its
    faces is limited too.

    Parameters
    ----------
    flow
        The flow.

    Attributes
    ----------
    guarding
        Whether the next step has guarded cells.
    limited
        In how many steps the fluxes or the gradients of a cell were limited, on elements; None before there were any.
    recent
        1 where that was so in the step `at`.
    """

    remembers = ("memory",)
    forgets = ("_back",)

    def __init__(self, flow: GuardedFlow) -> None:
        self.flow, self.guarding = flow, False
        self.limited: Dat | None = None
        self.at = 0
        self.back: Chain | None = None  # takes back what `CompressibleFlow.passed` has of a step
        self._chains: dict[tuple[bool, bool], Chain] = {}
        self._marks: dict[str, tuple[Loop, Chain]] = {}
        self._made = False

    @property
    def memory(self) -> dict[str, int]:
        """What the host keeps."""
        return {"guarding": self.guarding, "made": self._made, "counted": self.limited is not None,
                "at": self.at}  # fmt: skip

    @memory.setter
    def memory(self, memory: dict[str, int]) -> None:
        """Take back what a checkpoint has kept."""
        self.guarding, self.at = bool(memory["guarding"]), int(memory["at"])
        if memory["made"]:
            self._make()
        if memory["counted"]:
            self._count_in()

    # --------------------------------------------------------------------------------------- building
    def _count_in(self) -> Dat:
        if self.limited is None:
            self.limited, self.recent = (
                self.flow.context.dat(self.flow.elements, name=name) for name in ("limited", "recent")
            )
            self._mended = self.flow.context.scalar(0.0, "clip_cells")
        return self.limited

    def _make(self) -> None:
        """Make what only guarded steps need."""
        if self._made:
            return
        from fluxloom.linalg.vectors import copy

        flow, context = self.flow, self.flow.context
        nv, over, faces = flow.components, flow.elements, flow.spaces.faces.set
        self._guard, self._theta, self._touched = (
            context.dat(over, name=name) for name in ("guard", "theta", "touched")
        )
        self._outside = context.dat(over, name="outside", shape=(nv,), layout=flow.w.layout)
        self._diff = context.dat(faces, name="differences", shape=(nv,), layout=flow.face.layout)
        self._counts = context.scalar(np.zeros(2), "limited")
        self._back = Loop(copy, over, flow.kept, flow.w, systems=nv)
        self._own = Loop(local_step, over, flow.speed, flow.volume, flow.step, cfl=min(flow.cfl, _CFL))
        self._tally = Chain([
            Reset(self._counts),
            Loop(tally, over, flow.volume, self._touched, self._guard, self._count_in(), self.recent,
                 self._counts),
        ], name="guarded.tally")  # fmt: skip
        self._made = True

    def _limits(self, w: Dat, stage: int) -> list[Loop]:
        """Return the loops that limit the fluxes of a stage; its residual has just been found."""
        flow, balance = self.flow, self.flow.balanced
        a, b, c = _SSP[stage]
        law: dict[str, Any] = {"gamma": flow.gas.gamma, "nv": flow.components, "d": flow.dimension}
        moving, rows = int(flow.rotation is not None), (self._diff[flow.sides], flow.sign)
        loops = balance.stored(w)
        if flow.open:
            loops += [Loop(outside_differences, flow.boundary, flow.kind, flow.par, flow.face[flow.edge[0]],
                           w[flow.behind[0]], flow.outflow, self._outside, moving=moving,
                           states=flow.formulas, **law)]  # fmt: skip
        loops += [
            Loop(differences, flow.spaces.faces.set, w[balance.across], self._outside[balance.across], flow.face,
                 balance.flux, self._diff, moving=moving, **law),
            Loop(shares, flow.elements, flow.w, w, flow.res, flow.step, *rows, self._guard, self._theta,
                 a=a, b=b, c=c, **law),
            *balance.sectors.numbers(self._theta),
            Loop(lessened, flow.spaces.faces.set, self._theta[balance.across], self._diff, nv=flow.components),
        ]  # fmt: skip
        if flow.open:
            loops += [Loop(lessened_outside, flow.boundary, self._theta[flow.behind[0]], self._outside, flow.outflow,
                           nv=flow.components)]  # fmt: skip
        return [*loops, Loop(replaced, flow.elements, *rows, flow.res, self._touched, first=int(stage == 0),
                             nv=flow.components)]  # fmt: skip

    def _chain(self, local: bool) -> Chain:
        """Return a guarded step: of each cell's own length, or of one length for all."""
        key = local, self.flow.frozen
        if key not in self._chains:
            self._make()
            self._chains[key] = Chain(self._loops(local), fuse=False, name="guarded step")
        return self._chains[key]

    def _loops(self, local: bool) -> list[Loop | Reset]:
        flow = self.flow
        states, end = (flow.w, flow.kept, flow.last), len(_SSP) - 1
        law: dict[str, Any] = {"gamma": flow.gas.gamma, "nv": flow.components, "d": flow.dimension}
        step = self._own if local else Loop(common_step, flow.elements, flow.volume, flow.dt, flow.step)
        leave = left(_SSP, None if local else flow.leaving())
        loops: list[Loop | Reset] = [] if local else [Reset(flow.clipped_cells)]  # of local steps all count
        for k, (a, b, c) in enumerate(_SSP):
            w, to = states[k], (flow.norm, flow.clipped_cells, self._guard)
            loops += flow.given.loops(k)
            loops += flow.right_hand_side(w, limited=not flow.frozen)
            loops += [step] if k == 0 else []
            loops += [*self._limits(w, k), Reset(flow.norm)]
            loops += [
                Loop(advance, flow.elements, flow.w, w, flow.res, flow.step, states[k + 1], *to,
                     a=a, b=b, c=c, **law) if k < end else
                Loop(last_stage, flow.elements, w, flow.res, flow.step, flow.w, flow.kept, *to,
                     a=a, b=b, c=c, **law)
            ]  # fmt: skip
            loops += leave[k]
        return loops

    @property
    def chains(self) -> list[Chain]:
        """What it has called."""
        return [*self._chains.values(), *([self._tally] if self._made else [])]

    def forget(self) -> None:
        """Make chains anew: what they sum up has changed."""
        self._chains = {}

    # --------------------------------------------------------------------------------------- running
    def begin(self) -> None:
        """Guard the steps from here on. Collective."""
        self._make()
        self.guarding = True

    def iterate(self) -> None:
        """Make a step towards a steady flow, each cell with a step of its own. Collective."""
        step = self._chain(local=True)
        self._own.set(cfl=min(self.flow.cfl, _CFL))
        step()
        self._end()

    def advance(self, dt: float, *, again: bool = False) -> float:
        """Make a step of at most a length; return its length. Collective.

        Parameters
        ----------
        dt
            Its length.
        again
            Whether one has been made that is to be taken back.

        Raises
        ------
        Divergence
            If no step is short enough.
        """
        flow, step = self.flow, self._chain(local=False)
        self.guarding = True
        dt *= min(1.0, _CFL / flow.cfl)
        for _ in range(_HALVINGS):
            for _ in range(_TRIES):
                if again:
                    self._back()
                    if self.back is not None:
                        self.back()
                flow.dt.value = dt
                flow.given.prepare(flow.time, dt, _SSP)
                step()
                flow.given.check()
                again = True
                if not float(flow.clipped_cells.value):
                    self._end()
                    return dt
            dt *= 0.5
        flow.check()
        text = f"time {flow.time:g}: density or pressure are lost in steps of {dt:.3g} too: lower cfl"
        raise Divergence(f"{text} (now {flow.cfl:g})", step=flow.steps, time=flow.time)

    def _end(self) -> None:
        """Count what was limited in the step that was made."""
        self._tally()
        hit, guarded = np.asarray(self._counts.value)
        self.flow.limits += int(hit)
        self.guarding, self.at = guarded > 0.0, self.flow.steps + 1

    def mark(self, w: Dat) -> int:
        """Count in `limited` the cells of some states whose gradients were limited at a face. Collective.

        Their gradients have to have been found just before. Returns how many cells of the last step were limited in
        all.
        """
        flow = self.flow
        limited = self._count_in()
        if w.name not in self._marks:
            loop = Loop(clip_cells, flow.elements, w, flow.gradient, flow.limiter_values, flow.face[flow.sides],
                        flow.sign,
                        limited, self.recent, self._mended, kept=0.0, d=flow.dimension)  # fmt: skip
            self._marks[w.name] = loop, Chain([Reset(self._mended), loop], name="mended")
        loop, chain = self._marks[w.name]
        loop.set(kept=float(self.at == flow.steps))
        chain()
        self.at = flow.steps
        return int(self._mended.value)
