"""The checking mode: before a loop runs, a loop that changes nothing finds what would go wrong in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import FluxloomError, LoopCheckError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import RaggedMap, TableMap
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.declare.sets import Set, Subset
from fluxloom.dsl.declare.slots import SlotMap
from fluxloom.dsl.plan.bind import Bound
from fluxloom.dsl.run.check_errors import check_error, element_error
from fluxloom.dsl.run.interpret import element_values, kernel_types, longest_rows
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.check.checks import Checked, checked_kernel
from fluxloom.kernel.check.explain import Found, examine
from fluxloom.kernel.check.tests import HIGH
from fluxloom.kernel.check.values import SITES

if TYPE_CHECKING:
    from fluxloom.dsl.declare.runtime import Runtime

__all__ = ["LoopChecker"]

_RANK = 2**32
"""Numbers of elements are below, the rank counts above."""


class LoopChecker:
    """Checks every loop of a context before it runs (``context.checker``).

    What a kernel reads is known before its loop begins: no element reads what another one changes. So the checks are
    a loop of their own, that only reads, and the loop itself is the one that runs without them.
    """

    def __init__(self, context: Runtime) -> None:
        self.context = context
        self._checks: WeakKeyDictionary[Loop, _LoopCheck] = WeakKeyDictionary()
        self._numbers: WeakKeyDictionary[Set, Dat] = WeakKeyDictionary()
        self._first: Global | None = None

    def __call__(self, loop: Loop) -> None:
        """Check a loop with what its dats hold now. Collective.

        Raises
        ------
        LoopCheckError
            On every rank, for the first element of the first rank in which something goes wrong.
        """
        context = self.context
        observer, context.observer, context.checker = context.observer, None, None
        try:
            self._check(loop).run(loop.constants)
        finally:
            context.observer, context.checker = observer, self

    def loop_of(self, loop: Loop) -> Loop | None:
        """Return the loop that checks another one; None if nothing in it can go wrong."""
        return self._check(loop).loop

    def _check(self, loop: Loop) -> _LoopCheck:
        if loop not in self._checks:
            self._checks[loop] = _LoopCheck(loop, self)
        return self._checks[loop]

    def numbers(self, over: Set) -> Dat:
        """Return a dat with the number of each element, the rank's included."""
        if over not in self._numbers:
            numbers = np.arange(over.size, dtype=np.int64) + self.context.comm.rank * _RANK
            self._numbers[over] = Dat(over, numbers.reshape(over.shape), name="element numbers")
        return self._numbers[over]

    @property
    def first(self) -> Global:
        """What all checks are reduced to: the number and the site of the first element in which something is wrong."""
        if self._first is None:
            self._first = Global(self.context, np.int64(HIGH), name="first check that fails")
        return self._first


class _LoopCheck:
    def __init__(self, loop: Loop, checker: LoopChecker) -> None:
        self.bound, self.checker, self.calls = loop.bound, checker, 0
        bound = self.bound
        self.checked = checked_kernel(bound.lowered, kernel_types(bound), longest_rows(bound))
        self.loop: Loop | None = None
        if self.checked is not None:
            self.loop = self._loop(self.checked)

    def _loop(self, checked: Checked) -> Loop:
        bound, checker = self.bound, self.checker
        given = {a.name: a for a in bound.arguments}
        own = {checked.number: checker.numbers(bound.over.parent), checked.first: checker.first}
        arguments = [own[p.name] if p.name in own else given[p.name] for p in checked.kernel.parameters]
        loop = Loop(
            bound.kernel.lowered_as(checked.kernel), bound.over, *arguments, schedule=Schedule(lanes=1),
            name=f"{bound.name} (checked)", **bound.declared(bound.constants),
        )  # fmt: skip
        loop.bound = replace(loop.bound, compute=bound.compute)
        return loop

    def run(self, constants: Mapping[str, Any]) -> None:
        """Check what the loop is about to do."""
        self.calls += 1
        problem = check_maps(self.bound)
        if self.checker.context.distributed:
            problem = next((p for p in self.checker.context.comm.allgather(problem) if p is not None), None)
        if problem is not None:
            raise problem
        if self.checked is None or self.loop is None:
            return
        if not self.checker.context.device.native:
            self._run_reference(self.checked, self.loop, constants)
            return
        self.loop.follow(constants)
        self.loop()
        key = int(self.checker.first.value)
        if key == HIGH:
            return
        self.checker.first.value = np.int64(HIGH)
        self._raise(self.checked, self.loop, key, constants)

    def _run_reference(self, checked: Checked, loop: Loop, constants: Mapping[str, Any]) -> None:
        """Let Python do the checks, element by element."""
        over = self.bound.over
        values_of = element_values(loop.bound)
        for element in over.indices if isinstance(over, Subset) else range(over.size):
            values = values_of(int(element))
            found = examine(checked, values, constants, self.bound.compute.numpy)
            if found is not None:
                raise check_error(self.bound, checked, int(element), *found, values, self._note())

    def _note(self) -> str:
        return f"call {self.calls} of the loop"

    def _raise(self, checked: Checked, loop: Loop, key: int, constants: Mapping[str, Any]) -> None:
        """Raise the error of the element that was found; its rank tells the others."""
        comm, (number, site) = self.checker.context.comm, divmod(key, SITES)
        rank, element = divmod(number, _RANK)
        error: LoopCheckError | None = None
        if rank == comm.rank:
            found, values = _examined(checked, loop, element, constants, self.bound)
            shown = found[1] if found is not None and found[0] == site else None
            error = check_error(self.bound, checked, element, site, shown, values, self._note())
        told = (str(error), error.what) if error is not None else None
        told = comm.broadcast(told, rank) if comm.size > 1 else told
        if error is None:
            assert told is not None
            filename, line = self.bound.kernel.filename, checked.sites[site - 1].location.line
            error = LoopCheckError(
                told[0], loop=self.bound.name, kernel=self.bound.kernel.name, what=told[1], filename=filename,
                line=line, element=element,
            )  # fmt: skip
        raise error


def _examined(
    checked: Checked, loop: Loop, element: int, constants: Mapping[str, Any], bound: Bound
) -> tuple[Found | None, dict[str, Any]]:
    """Let Python do the checks of one element, which finds the values; none where they cannot be brought here."""
    try:
        values = element_values(loop.bound)(element)
        return examine(checked, values, constants, bound.compute.numpy), values
    except (FluxloomError, IndexError):
        return None, {}


# ------------------------------------------------------------------------------------------- maps


def check_maps(bound: Bound) -> LoopCheckError | None:
    """Return the error of an entry of a map, or of a subset, that leads out of its set; None if there is none.

    All were checked when they were declared; their tables are arrays that somebody may have changed since.
    """
    over = bound.over
    if isinstance(over, Subset) and (bad := _outside(over.indices, over.parent.size)) is not None:
        return _map_error(bound, f"entry {bad[0]} of the subset {over.name!r}", bad[1], over.parent.size)
    for arg in bound.arguments:
        for what, table, stop in _tables(arg.map, arg.data):
            if (bad := _outside(table, stop)) is not None:
                return _map_error(bound, f"entry {bad[0]} of {what}", bad[1], stop)
    return None


def _tables(through: object, data: Dat | Global) -> list[tuple[str, npt.NDArray[Any], int]]:
    match through:
        case TableMap():
            stop = through.target.size if through.stays else through.target.stored
            return [(f"map {through.name!r}", through.table, stop)]
        case RaggedMap():
            return [(f"ragged map {through.name!r}", through.indices, through.target.stored)]
        case SlotMap() if isinstance(data, Dat):
            stop = through.target.storage_size if through.stored else through.target.stored
            return [(f"slots {through.name!r}", through.cells, stop),
                    (f"the components of slots {through.name!r}", through.components, data.dim)]  # fmt: skip
    return []


def _outside(table: npt.NDArray[Any], stop: int) -> tuple[str, int] | None:
    if not table.size or (int(table.min()) >= 0 and int(table.max()) < stop):
        return None
    place = np.argwhere((table < 0) | (table >= stop))[0]
    return str([int(k) for k in place]), int(table[tuple(place)])


def _map_error(bound: Bound, where: str, value: int, stop: int) -> LoopCheckError:
    return element_error(bound, -1, f"{where} is {value}: outside 0 ... {stop - 1}")
