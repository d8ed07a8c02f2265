"""Guards of sanity: a run whose flow is lost ends as diverged, with what is wrong, where, when, and what to try.

A residual that is not finite, or that has grown beyond measure in a steady run, is seen at every step. All else is
looked at every few steps, by a reduction on the device (`fluxloom.run.watch`) whose numbers are judged at the next
look, and at the end of a run at once. So the step of a violation is known to lie between two looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf, isfinite, isnan, nan
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.errors import CaseError, Divergence, SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.parts import Part
from fluxloom.run.flow_run import FlowRun, find_lost
from fluxloom.run.watch import HUGE, LOST, Balance, Broken, GuardLimits, Numbers

__all__ = ["Guards", "Violation"]

_TELLING = ("limited", "mach", "speed", "velocity", "scalar")
"""Fields whose largest value shows where a flow is lost, for guards that have no field of their own."""

_OF_THE_START = ("finite", "positive")
"""Guards that refuse a start."""

_ROUNDING = 1e-6
"""Part of a total up to which nothing is said of its balance; in single precision rounding comes near it."""

_NOT_FINITE = " is not finite"

_LONGER = 1.0 + 1e-9
"""Times the largest stable step, beyond which it is told."""

_BEGINNING = 100
"""Steps whose largest residual is the first one: a flow that begins near an exact solution begins at round-off."""

_FIRST_PART = 1e-10
"""Of the first residual, below which a lower one does not count as lower: it is round-off."""


@dataclass(frozen=True)
class Violation:
    """What a guard found.

    Attributes
    ----------
    guard
        Key of ``[guards]`` that sets it; ``"finite"`` for a residual that is not finite.
    quantity
        What is wrong, in words.
    field
        Of the output, in which it is seen; empty: it is of the whole flow.
    value, limit
        What was found, what may be; NaN: there is no such number.
    element, number, place
        ``"cell"`` or ``"point"``, its global number (-1: of the whole flow), where it is.
    step, since
        Behind which step it was seen, and behind which all was well before.
    time
        Of that step, where there is one.
    reason, advice
        More about it; what to change.
    whole
        Whether it is of the whole flow: the place is then where ``field`` is largest.
    """

    guard: str
    quantity: str
    field: str
    value: float
    limit: float
    element: str
    number: int
    place: tuple[float, ...]
    step: int
    since: int
    time: float | None
    reason: str
    advice: str
    whole: bool = False

    @property
    def message(self) -> str:
        """All of it in one line, as ``diverged at step 412 (t = 0.103): pressure -0.31 in cell 7 at (0.4, 0.02)``."""
        single = self.step - self.since <= 1
        step = f"at step {self.step:,}" if single else f"between steps {self.since:,} and {self.step:,}"
        when = "" if self.time is None else f" (t = {self.time:.6g})"
        return f"diverged {step}{when}: {self.what}" + (f"; {self.advice}" if self.advice else "")

    @property
    def what(self) -> str:
        """What was found, and where, without the step and the advice."""
        what = f"{self.quantity} {self.value:.6g}" if not isnan(self.value) else self.quantity
        where = ""
        if self.number >= 0:
            at = f" at ({', '.join(f'{x:.4g}' for x in self.place)})" if self.place else ""
            where = f" in {self.element} {self.number:,}{at}"
        bound = f" (limit {self.limit:.6g})" if not isnan(self.limit) else ""
        seen = f"; {self.field} is largest{where}" if self.whole and where else ""
        return f"{what}{'' if self.whole else where}{bound}" + (f"; {self.reason}" if self.reason else "") + seen

    def error(self) -> Divergence:
        """Return it as an error."""
        return Divergence(
            self.message, field=self.field, value=self.value, element=self.element, number=self.number,
            place=self.place, step=self.step, time=self.time, reason=self.guard,
        )  # fmt: skip

    def record(self) -> dict[str, Any]:
        """Return it for ``run.json``."""
        found = asdict(self) | {"place": list(self.place), "message": self.message}
        return {key: None if isinstance(v, float) and not isfinite(v) else v for key, v in found.items()}


class Guards:
    """The guards of a run. Every method is collective, and returns the same on all ranks.

    Parameters
    ----------
    table
        What they are set to.
    run
        What they watch.
    context
        Of the run.
    """

    def __init__(self, table: GuardLimits, run: FlowRun[Any], context: Context) -> None:
        self._table, self._run, self._comm = table, run, context.comm
        self._watch = run.flow.watch(table, run.until)
        self._every = table.every or (self._watch.every if self._watch is not None else 1)
        self._pending: tuple[int, float | None, Mapping[str, float]] | None = None
        self._good, self._looks, self._clipped_since = 0, 0, -1
        self._seen, self._first, self._lowest = 0, 0.0, inf
        self._values: dict[str, float] = {}
        self._reached = 0.0

    # ------------------------------------------------------------------------------------------- the run
    def begin(self, steps: int = 0, time: float | None = None) -> None:
        """Look at the start: behind the checkpoint, which may restore an older state, and before the first step.

        Raises
        ------
        CaseError
            If a value of the start is not finite, or no start for these equations; says which, and where.
        """
        self._good = steps
        if self._watch is None:
            return
        numbers = self._looked(steps, time)
        self._reached = numbers.values.get("courant", 0.0)
        for rule in self._watch.rules:  # all of them: what they find now is what they compare with
            broken = rule.broken(numbers)
            if broken is not None and broken.guard in _OF_THE_START:
                raise CaseError(f"the start of the run: {self._violation(broken, steps, time).what}")

    def stepped(self, steps: int, time: float | None, residual: float) -> Violation | None:
        """Return what is wrong behind a step; None: nothing, as far as is known yet."""
        lost = self._residual(steps, time, residual)
        if lost is not None or self._watch is None or steps % self._every:
            return lost
        found = self._collected()
        if found is not None:
            return found
        if all(one.late for one in self._watch.reductions):
            self._pending = steps, time, self._taken()
            return None
        return self._judged(self._looked(steps, time), steps)

    def caught(self, error: SolverError, steps: int, time: float | None) -> Violation:
        """Return what a step has raised, with the place that the fields show."""
        lost = isinstance(error, Divergence)
        broken = Broken("finite" if lost else "step", "" if lost else "the step failed", nan, extreme="lost",
                        reason=str(error))  # fmt: skip
        found = self._violation(broken, steps, time, since=steps - 1)
        if lost and error.number >= 0 and (found.number < 0 or found.whole):
            place = error.place or _place(self._run, self._comm, error.number)
            given = {"field": error.field, "element": error.element, "number": error.number, "place": place}
            found = replace(found, **given, whole=False)
        if found.quantity.endswith(_NOT_FINITE):  # that says more than the error
            return replace(found, guard="finite")
        text = str(error).partition(found.advice)[0].rstrip(": ;") if found.advice else str(error)
        return replace(found, reason=text)

    def look(self, steps: int, time: float | None, *, last: bool = False) -> Violation | None:
        """Return what is wrong with the flow as it is now: to be asked before it is kept, or a run is called good.

        Parameters
        ----------
        steps, time
            Behind which step, and when.
        last
            Whether the run ends here.
        """
        if self._watch is None:
            return None
        found = self._collected()
        if found is not None:
            return found
        return self._judged(self._looked(steps, time, last=last), steps)

    def _looked(self, steps: int, time: float | None, *, last: bool = False) -> Numbers:
        """Return the numbers of the flow as it is now."""
        return self._numbers(steps, time, self._taken(), last=last)

    def _taken(self) -> Mapping[str, float]:
        """Let the device find its numbers; return those of the host."""
        assert self._watch is not None
        for one in self._watch.reductions:
            one.take()
        return {name: value for known in self._watch.host for name, value in known().items()}

    def _collected(self) -> Violation | None:
        """Judge the look before, whose numbers have come meanwhile."""
        if self._pending is None:
            return None
        (steps, time, known), self._pending = self._pending, None
        return self._judged(self._numbers(steps, time, known), steps)

    def _numbers(
        self, steps: int, time: float | None, known: Mapping[str, float], *, last: bool = False
    ) -> Numbers:  # fmt: skip
        assert self._watch is not None
        values: dict[str, float] = {}
        for one in self._watch.reductions:
            found = one.collect()
            values |= found | {LOST: values.get(LOST, 0.0) + found.get(LOST, 0.0)}
        self._values = values = values | dict(known)
        return Numbers(steps, time, values, last)

    # ----------------------------------------------------------------------------------------- judgement
    def _judged(self, numbers: Numbers, steps: int) -> Violation | None:
        """Return the first rule that is broken."""
        assert self._watch is not None
        self._looks += 1
        if self._clipped_since < 0 and self._clipped():
            self._clipped_since = self._good
        for rule in self._watch.rules:
            broken = rule.broken(numbers)
            if broken is not None:
                return self._violation(broken, steps, numbers.time)
        self._good = steps
        self._reached = max(self._reached, numbers.values.get("courant", 0.0))
        return None

    def _residual(self, steps: int, time: float | None, residual: float) -> Violation | None:
        """Judge the residual of a step."""
        if not isfinite(residual):
            broken = Broken("finite", "residual", residual, extreme="lost")
            return self._violation(broken, steps, time, since=steps - 1)
        factor = self._table.residual
        if self._watch is None or not self._watch.steady or not factor:
            return None
        self._seen += 1
        beginning = self._seen <= _BEGINNING
        if beginning and not self._clipped():  # it may begin at round-off
            self._first = self._lowest = max(self._first, residual)
            return None
        self._first = self._first or residual
        self._lowest = min(self._lowest, residual)
        limit = factor * max(self._lowest, _FIRST_PART * self._first)
        if residual <= limit:
            return None
        reason = f"{factor:g} times its lowest value so far, or 1e-10 of the first one"
        return self._violation(Broken("residual", "residual", residual, limit, reason=reason), steps, time, steps - 1)

    def _violation(self, broken: Broken, steps: int, time: float | None, since: int | None = None) -> Violation:
        """Return a violation with its place, which is sought in the fields as they are now."""
        run, flow, comm = self._run, self._run.flow, self._comm
        element = "point" if flow.points else "cell"
        field, value, number, reason = broken.field, broken.value, -1, broken.reason
        quantity = broken.quantity
        fields = run.fields()
        bad = find_lost(comm, flow.part, fields) if broken.extreme == "lost" else None
        if bad is not None:
            field, number, count = bad
            value, quantity = nan, field + _NOT_FINITE
            reason = f"so in {count:,} of {flow.points or flow.cells:,} {element}s"
        elif field := next((name for name in (field, *_TELLING) if name in fields), ""):
            value_there, number = _extreme(comm, flow.part, fields[field], least=broken.extreme == "least")
            if broken.guard == "positive":
                value = min(value, value_there)
        clipped = self._clipped_text()
        advice = "; ".join(part for part in (clipped, broken.advice, flow.advice()) if part)
        place, before = _place(run, comm, number), self._good if since is None else since
        return Violation(
            broken.guard, quantity or "state", field, value, broken.limit, element, number, place, steps, before, time,
            reason, advice, whole=bad is None and not broken.field,
        )  # fmt: skip

    def _clipped_text(self) -> str:
        """Return how many states were clipped, in words; empty: none."""
        count, since = self._clipped(), self._clipped_since
        if not count:
            return ""
        return f"{count:,.0f} states were clipped" + (f" since step {since:,}" if since >= 0 else "")

    def _clipped(self) -> float:
        """Return how many states were clipped so far."""
        return 0.0 if self._watch is None or self._watch.clipped is None else self._watch.clipped()[0]

    # -------------------------------------------------------------------------------------------- results
    def summary(self) -> Sequence[tuple[str, str]]:
        """Return rows: what was clipped, how far the balance is off, how long steps were."""
        rows = [("clipped", text)] if (text := self._clipped_text()) else []
        rules = () if self._watch is None else self._watch.rules
        for rule in rules:
            if isinstance(rule, Balance) and rule.off > _ROUNDING:
                rows.append(("balance", f"the {rule.quantity} is off by {rule.off:.1e} of it"))
        if self._watch is not None and self._reached > _LONGER:
            bound = self._watch.bound
            text = f"CFL {self._reached * bound:.3g} reached, above the bound {bound:.3g} of this scheme"
            rows.append(("time step", f"{text}: the answer may be wrong"))
        return rows

    def record(self) -> dict[str, Any]:
        """Return for ``run.json``: looks, the steps between them, and the numbers of the last one."""
        clipped = self._clipped()
        numbers = {key: value for key, value in self._values.items() if abs(value) < HUGE}
        numbers |= {"courant": self._reached} if "courant" in numbers else {}
        found: Mapping[str, Any] = {"looks": self._looks, "every": self._every, "last_good_step": self._good}
        return {**found, "clipped": clipped, "clipped_since": self._clipped_since, "numbers": numbers}


def _extreme(comm: Comm, part: Part | None, values: npt.NDArray[Any], *, least: bool) -> tuple[float, int]:
    """Return the least value of all ranks, or the largest magnitude, and the element that has it. Collective."""
    numbers = np.arange(len(values)) if part is None else part.numbers[: len(values)]
    with np.errstate(all="ignore"):
        seen = values if values.ndim == 1 else np.linalg.norm(values.reshape(len(values), -1), axis=1)
        ordered = np.nan_to_num(seen if least else -np.abs(seen), nan=np.inf, posinf=np.inf, neginf=-np.inf)
    here = (np.inf, -1) if not len(values) else (float(ordered.min()), int(numbers[int(ordered.argmin())]))
    best = min(comm.allgather(here))
    return (best[0] if least else -best[0]), best[1]


def _place(run: FlowRun[Any], comm: Comm, number: int) -> tuple[float, ...]:
    """Return where an element is: a point, or the mean of the corners of a cell; the same on every rank."""
    found: tuple[float, ...] = ()
    if comm.rank == 0 and number >= 0:
        mesh = run.mesh()
        if run.flow.points:
            found = tuple(mesh.points[number].tolist())
        else:
            for name, numbers in mesh.cell_ranges.items():
                if number in numbers:
                    corners = mesh.cells[name][number - numbers.start]
                    found = tuple(mesh.points[corners].mean(axis=0).tolist())
    return comm.broadcast(found)
