"""What the next step of a runner reads, found from its loops: dats, globals, and the numbers that its parts declare.

The access modes of loops say what a step needs: a dat is part of the state if some chain or loop reads it before it
overwrites it, and a loop or the host has changed it. What an engineer adds is only what the host keeps. A class says
so in one line each:

``remembers = ("time", "steps")``
    attributes, or properties with setters, that are part of the state;
``forgets = ("basis",)``
    attributes with dats that every step overwrites before it reads them, across chains, such as the vectors of a Krylov
    space, or that what is remembered makes again;
``keeps = ("made_of",)``
    dats and globals that are part of the state though no loop reads them;
``restored()``
    is called when all values are there again;
``monitor = True``
    it only looks, as histories and probes do: a run may go on with others.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CheckpointError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop

if TYPE_CHECKING:
    from fluxloom.dsl.checkpoint.state import State, StateFile

__all__ = ["Memory"]

_LEAVES = (
    "fluxloom.codegen.", "fluxloom.comm.", "fluxloom.core.", "fluxloom.device.", "fluxloom.dsl.", "fluxloom.graph.",
    "fluxloom.kernel.", "fluxloom.mesh.", "fluxloom.perf.", "fluxloom.toolchain.",
)  # fmt: skip
"""Rooms whose objects hold nothing of a solver."""

_NEW = 1
"""Version of a dat that was made later, with values that nobody has changed since."""

_FLOW = "run.flow"
"""Beginning of the paths of what is of the flow of a run, not beside it."""

_GOING = " going"
"""Name of the chains whose next call is one of many, not the first."""


@dataclass(eq=False)
class _Found:
    """What can be reached from a runner, by the path to it, in order."""

    dats: dict[str, Dat] = field(default_factory=dict)
    globals: dict[str, Global] = field(default_factory=dict)
    calls: dict[str, Chain | Loop] = field(default_factory=dict)
    others: dict[str, Chain | Loop] = field(default_factory=dict)
    holders: dict[str, Any] = field(default_factory=dict)
    monitors: list[str] = field(default_factory=list)
    restorable: list[Any] = field(default_factory=list)
    kept: set[int] = field(default_factory=set)
    left: list[tuple[str, Any]] = field(default_factory=list)
    aside: _Found = field(init=False, repr=False)
    """What only parts hold whose dats no step needs from the one before."""

    def monitor_of(self, key: str) -> str:
        """Return the path of the monitor that something belongs to; empty: to none."""
        return next((path for path in self.monitors if key == path or key.startswith((f"{path}.", f"{path}:"))), "")


class Memory:
    """The state of a runner, and the way back to it.

    Parameters
    ----------
    parts
        Of the owners that are of other packages: a flow, or a monitor, of a user's own.
    owners
        By name: the runner, and what else keeps numbers; names begin the names of all that is theirs.
    """

    def __init__(self, *parts: Any, **owners: Any) -> None:
        self._owners = owners
        every = (*parts, *owners.values())
        self._homes = {type(one).__module__.partition(".")[0] for one in every} | {"fluxloom"}
        self._needs = weakref.WeakKeyDictionary[Chain | Loop, _Needs]()
        self._versions = weakref.WeakKeyDictionary[Dat, int]()
        found = self._find()
        for dat in found.dats.values():
            self._versions[dat] = dat.version

    # ----------------------------------------------------------------------------------------- state
    def state(self) -> State:
        """Return the state. Collective."""
        found = self._find()
        numbers: dict[str, Any] = {}
        tables: dict[str, npt.NDArray[Any]] = {}
        for path, holder in found.holders.items():
            for name in _names(holder, "remembers"):
                from fluxloom.dsl.checkpoint.memory_values import encoded

                key = f"{path}.{name}"
                numbers[key] = encoded(getattr(holder, name), key, tables)
        needed, changed = self._needed(found)
        numbers[_GOING] = [path for path, call in found.calls.items() if isinstance(call, Chain) and call.going]
        from fluxloom.dsl.checkpoint.state import State

        return State(
            {
                key: dat for key, dat in found.dats.items()
                if id(dat) in found.kept or (
                    id(dat) in needed and (id(dat) in changed or dat.version != self._versions.get(dat, _NEW))
                )
            },
            {key: item for key, item in found.globals.items() if id(item) in needed or id(item) in found.kept},
            numbers, tables,
        )  # fmt: skip

    def monitors(self) -> list[str]:
        """Return the paths of what is only looked at."""
        return self._find().monitors

    def calls(self) -> list[Chain | Loop]:
        """Return the chains and loops that a step may call."""
        found = self._find()
        return [*found.calls.values(), *found.others.values()]

    def forgotten(self) -> list[Dat | Global]:
        """Return what only parts hold that classes name as ``forgets``."""
        found = self._find()
        kept = {id(item) for item in (*found.dats.values(), *found.globals.values())}
        every = (*found.aside.dats.values(), *found.aside.globals.values(),
                 *(item for call in found.aside.calls.values() for item in _data(call)))  # fmt: skip
        return list({id(item): item for item in every if id(item) not in kept}.values())

    def _needed(self, found: _Found) -> tuple[set[int], set[int]]:
        """Return which data a chain or a loop needs from before it, and which dats one of them changes, by ``id``."""
        needed, changed = set[int](), set[int]()
        every = (*found.calls.values(), *found.others.values())
        inside = {id(loop) for call in every if isinstance(call, Chain) for loop in call.loops}
        for counts, calls in ((True, found.calls), (False, found.others)):
            for call in calls.values():
                if id(call) in inside:  # parts of solvers keep loops for their chains
                    continue
                if call not in self._needs:
                    self._needs[call] = _Needs.of(call)
                needs = self._needs[call]
                needed |= {id(data) for data in needs.before if counts}
                changed |= {id(dat) for dat in needs.changed}
        return needed, changed

    # --------------------------------------------------------------------------------------- restore
    def restore(self, file: StateFile, *, beside: bool = False) -> list[str]:
        """Set everything to a state. Collective.

        Parameters
        ----------
        file
            With the state.
        beside
            Whether only what is beside the flow is set, monitors and the log of residuals: the flow has its state from
            elsewhere.

        Returns
        -------
        list of str
            What begins anew, as it is another thing than the file has: paths of monitors.

        Raises
        ------
        CheckpointError
            When the state is not one of these owners.
        """
        done: set[str] = set()
        anew: set[str] = set()
        while fresh := [path for path in self._find().holders if path not in done]:  # setters may make more of them
            found = self._find()
            for path in fresh:
                done.add(path)
                if not beside or found.monitor_of(path) or not path.startswith(_FLOW):
                    self._recall(path, found, file, anew)
        found = self._find()
        keys = [(key, found.dats.get(key)) for key in file.dats]
        pairs = [*keys, *((key, found.globals.get(key)) for key in file.globals)]
        if beside:
            pairs = [(key, item) for key, item in pairs if found.monitor_of(key) or _beside(key, file)]
        for key, item in pairs:
            monitor = found.monitor_of(key)
            if (item is None or file.misfit(key, item)) and (monitor or _beside(key, file)):
                anew.add(monitor)
            elif item is None:
                raise CheckpointError(f"{file.path}: it holds {key!r}, which this run does not have: it is of another "
                                      "version of fluxloom or of another case")
        for key, item in pairs:
            if item is not None and found.monitor_of(key) not in anew:
                file.load(key, item)
        if beside:
            return sorted(anew - {""})
        for holder in found.restorable:
            holder.restored()
        for path in file.numbers.get(_GOING, ()):
            if isinstance(call := found.calls.get(path), Chain):
                call.go_on()
        return sorted(anew - {""})

    def _recall(self, path: str, found: _Found, file: StateFile, anew: set[str]) -> None:
        """Give a holder back what it remembers."""
        holder = found.holders[path]
        for name in _names(holder, "remembers"):
            from fluxloom.dsl.checkpoint.memory_values import decoded

            key = f"{path}.{name}"
            if key not in file.numbers:
                if monitor := found.monitor_of(key):
                    anew.add(monitor)
                    return
                raise CheckpointError(f"{file.path}: has no {key!r}: it is of another version of fluxloom or case")
            value = decoded(file.numbers[key], file.tables)
            try:
                setattr(holder, name, value)
            except CheckpointError:
                if not (monitor := found.monitor_of(key)):
                    raise
                anew.add(monitor)
                return

    # ------------------------------------------------------------------------------------------ find
    def _find(self) -> _Found:
        """Look at all that can be reached."""
        for owner in self._owners.values():  # makes those that are there only when they are wanted
            _ = getattr(owner, "chains", None), getattr(owner, "chain", None)
        found, seen = _Found(), set[int]()
        self._look(list(self._owners.items()), found, seen)
        beside = _Found()  # what only parts hold whose dats no step needs from the one before
        while found.left:
            left, found.left = found.left, []
            self._look(left, beside, seen)
            found.left += beside.left
            beside.left = []
        found.others, found.aside = beside.calls, beside
        forgotten = {id(data) for data in (*beside.dats.values(), *beside.globals.values())}
        forgotten |= {id(item) for call in beside.calls.values() for item in _data(call)}
        known = {id(data) for data in (*found.dats.values(), *found.globals.values())} | forgotten
        for path, call in found.calls.items():
            for item in _data(call):
                if id(item) not in known:
                    known.add(id(item))
                    place = found.dats if isinstance(item, Dat) else found.globals
                    home = found.monitor_of(path) or path.partition(".")[0]
                    place[_free(f"{home}:{item.name}", place)] = item  # pyright: ignore[reportArgumentType]
        return found

    def _look(self, items: Iterable[tuple[str, Any]], found: _Found, seen: set[int]) -> None:
        """Look at all that can be reached from some items, the nearest first."""
        queue = deque(items)
        while queue:
            path, item = queue.popleft()
            if id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, Dat):
                found.dats[path] = item
            elif isinstance(item, Global):
                found.globals[path] = item
            elif isinstance(item, Chain | Loop):
                found.calls[path] = item
            else:
                queue.extend(self._inside(path, item, found))

    def _inside(self, path: str, item: Any, found: _Found) -> Iterator[tuple[str, Any]]:
        """Yield what an object holds."""
        if item is None or isinstance(item, bool | int | float | str | np.ndarray | np.generic | type):
            return
        if isinstance(item, Mapping):
            yield from ((f"{path}[{key}]", value) for key, value in item.items())
        elif isinstance(item, list | tuple | deque):
            yield from _items(path, item)
        elif isinstance(item, MethodType):
            yield path, item.__self__
        elif isinstance(item, partial):
            yield from _items(path, (item.func, *item.args, *item.keywords.values()))
        elif isinstance(item, FunctionType):
            names = item.__code__.co_freevars
            yield from ((f"{path}<{name}>", _cell(cell)) for name, cell in zip(names, item.__closure__ or (),
                                                                               strict=True))
        elif self._own(type(item).__module__):
            if getattr(type(item), "monitor", False):
                found.monitors.append(path)
            if _names(item, "remembers"):
                found.holders[path] = item
            if callable(getattr(type(item), "restored", None)):
                found.restorable.append(item)
            values = _attributes(item)
            forgets = _names(item, "forgets")
            found.left += [(f"{path}.{name}", values[name]) for name in forgets if name in values]
            found.kept |= {id(values.get(name)) for name in _names(item, "keeps")}
            yield from ((f"{path}.{name}", value) for name, value in values.items() if name not in forgets)

    def _own(self, module: str) -> bool:
        return module.partition(".")[0] in self._homes and not f"{module}.".startswith(_LEAVES)


def _names(holder: Any, what: str) -> Sequence[str]:
    return getattr(type(holder), what, ())


def _attributes(item: Any) -> dict[str, Any]:
    slots = [name for kind in type(item).__mro__ for name in getattr(kind, "__slots__", ())]
    return {**{name: getattr(item, name, None) for name in slots}, **getattr(item, "__dict__", {})}


def _items(path: str, items: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield what is in a list: by name where it has names, else by number."""
    names: set[str] = set()
    for k, item in enumerate(items):
        if k == 0 and isinstance(item, bool | int | float | str):
            return  # numbers
        name = item.name if isinstance(getattr(item, "name", None), str) and getattr(item, "monitor", False) else ""
        yield f"{path}[{name if name and name not in names else k}]", item
        names.add(name)


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _data(call: Chain | Loop) -> Iterator[Dat | Global]:
    for loop in call.loops if isinstance(call, Chain) else (call,):
        yield from (a.data for a in loop.bound.arguments if isinstance(a.data, Dat | Global))


def _free(key: str, known: Mapping[str, Any]) -> str:
    """Return a name that is not taken."""
    number = 1
    name = key
    while name in known:
        number += 1
        name = f"{key}#{number}"
    return name


def _beside(key: str, file: StateFile) -> bool:
    """Whether something in a file belongs to a monitor that is gone."""
    return any(key == path or key.startswith((f"{path}.", f"{path}:")) for path in file.about.get("monitors", ()))


@dataclass(frozen=True, eq=False)
class _Needs:
    """What a chain or a loop needs from before it, and which dats it changes."""

    before: tuple[Dat | Global, ...]
    changed: tuple[Dat, ...]

    @classmethod
    def of(cls, call: Chain | Loop) -> _Needs:
        """Look at the access modes; on several ranks collective."""
        from fluxloom.dsl.checkpoint.rules import call_of

        found = call_of(call)
        before: dict[int, Dat | Global] = {}
        written = {id(dat) for dat in found.dead}
        for use in found.uses:
            before |= {id(d): d for d in use.needed if id(d) not in written}
            written |= {id(d) for d in use.overwritten}
        written = set[int]()
        for step in call.steps if isinstance(call, Chain) else (call,):
            if isinstance(step, Reset):
                written.add(id(step.target))
                continue
            data = [a.data for a in step.bound.arguments if isinstance(a.data, Global)]
            before |= {id(item): item for item in data if id(item) not in written}
        return cls(tuple(before.values()), tuple(d for use in found.uses for d in use.changed))
