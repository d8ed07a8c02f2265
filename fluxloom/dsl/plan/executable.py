"""From a generated function to a call: the argument block, its addresses, its constants."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.language.group import Group
from fluxloom.codegen.language.reduce import PART
from fluxloom.codegen.language.spec import ArgSpec, Entry, LaunchSpec, Slot
from fluxloom.device.base import Buffer, Call, Launch, Program
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import RaggedMap, TableMap
from fluxloom.dsl.declare.sets import Grid, Set, Subset
from fluxloom.dsl.declare.slots import SlotPlaces
from fluxloom.dsl.plan.bind import Numbering
from fluxloom.dsl.plan.plan import Plan, Span

__all__ = ["ArgumentBlock"]


_TYPES = {
    "int32_t *": np.int32,
    "int64_t *": np.int64,
    "uint8_t *": np.uint8,
    "uint16_t *": np.uint16,
    "double *": np.float64,
}


class ArgumentBlock:
    """The 8-byte words a generated function reads: pointers, sizes, constants.

    Parameters
    ----------
    entry, group
        The generated function.
    numbering
        What its dat and map numbers stand for.
    plans
        The plan of each member loop.
    over
        The driving set.
    threads
        Threads of the loop.
    span
        Which elements, of a gather which targets; by default all.
    partials
        Where several spans of one loop keep their partial results together, by slot.
    """

    def __init__(
        self,
        entry: Entry,
        group: Group,
        numbering: Numbering,
        plans: Mapping[int, Plan],
        over: Set,
        threads: int,
        constants: Mapping[str, float | int | bool],
        span: Span | None = None,
        partials: dict[str, Buffer] | None = None,
    ) -> None:
        self.span, self._partials = span, partials
        self.entry, self.group, self.numbering = entry, group, numbering
        self.plans, self.over, self.threads = plans, over, threads
        self.words = np.zeros(len(entry.slots), dtype=np.int64)
        self._context = over.context
        self._kept: list[Any] = []
        self._place = {s.name: k for k, s in enumerate(entry.slots)}
        self._by_key = {a.dat: a for m in group.members for a in m.spec.args}
        self._constants: Buffer | None = None
        self._elsewhere: dict[int, Buffer] = {}
        self.stale = False
        """Whether `send` has something to do."""
        for k, slot in enumerate(entry.slots):
            if slot.origin != "constant":
                self.words[k] = self._value(slot)
        for name, value in constants.items():
            self.set_constant(name, value)

    def call(self, name: str, program: Program) -> Call:
        """Return the call of the generated function with these arguments."""
        launches = tuple(item for spec in self.entry.launches for item in self._launch(spec))
        if not self.entry.launches:
            launches = (Launch(self.entry.symbol),)
        return Call(name, program, self.words, launches, [self])

    def set_constant(self, name: str, value: float | int | bool) -> None:
        """Change a run-time constant."""
        if self._constants is not None:
            self._set_resident(name, value)
            return
        k = self._place.get("c" + name)
        if k is None:
            return  # the body does not read it
        _set_word(self.words[k : k + 1], self.entry.slots[k].ctype, value)

    def _set_resident(self, name: str, value: float | int | bool) -> None:
        """Change a constant that the device keeps in its own memory; `send` takes it there."""
        assert self._constants is not None
        for k, (ctype, known) in enumerate(self.entry.constants):
            if known == name:
                words = self._constants.host(write=True).view(np.int64)
                _set_word(words[k : k + 1], ctype, value)
                self.stale = True

    def send(self) -> None:
        """Bring constants to the device that have changed since the last run, after what it was asked for so far."""
        self.stale = False
        if self._constants is not None:
            self._constants.device()

    def _launch(self, spec: LaunchSpec) -> list[Launch]:
        """Return the launches of one generated kernel: one, or one a colour."""
        if spec.colours:
            bounds = np.asarray(self._plan_value("colour_off")).tolist()
            out, partials = [], 0
            for begin, end in itertools.pairwise(bounds):
                items = -(-(end - begin) * spec.per // spec.over)
                out.append(Launch(spec.symbol, items, spec.block, (begin, end, partials)))
                partials += -(-items // spec.chunk)
            return [item for item in out if item.items]
        if not spec.extent:
            return [Launch(spec.symbol, spec.block, spec.block)]
        begin = self.extent("from") if self.group.ranged and spec.extent != "n_long" else 0
        count = (self.extent(spec.extent) - begin) * spec.per
        return [Launch(spec.symbol, -(-count // spec.over), spec.block)]

    def extent(self, name: str) -> int:
        """Return a number of elements by the name of the slot that holds it."""
        return int(self.words[self._place[name]])

    def point(self, dat: int, buffer: Buffer, *, output: bool = False) -> None:
        """Let a dat number stand for another buffer."""
        k = self._place.get(f"d{dat}o" if output else f"d{dat}")
        if k is not None:
            self.words[k] = buffer.address

    def redirect(self, number: int, buffer: Buffer) -> None:
        """Let a dat or global stand for another buffer for good."""
        self._elsewhere[number] = buffer
        self.point(number, buffer)

    def refresh(self) -> None:
        """Take the buffers that the dats have now."""
        for slot in self.entry.slots:
            if slot.origin in ("dat", "global", "output"):
                number = int(slot.key)
                buffer = self._elsewhere.get(number, self._dat(number).buffer)
                self.words[self._place[slot.name]] = buffer.address

    # ------------------------------------------------------------------------------------ values
    def _dat(self, number: int) -> Dat | Global:
        return self.numbering.dats[number]

    def _keep(self, array: npt.NDArray[Any], ctype: str) -> int:
        """Return the address of an array after making sure that it has the type C expects."""
        array = np.ascontiguousarray(array, dtype=_TYPES.get(ctype))
        if not array.size:
            array = np.zeros(1, dtype=array.dtype)
        word, kept = self._context.resident(array)
        self._kept.append(kept)
        return word

    def _allocate(self, count: int, size: int) -> int:
        """Return the address of zeroed working memory on the device."""
        buffer = self._context.allocate(max(1, count) * size)
        self._kept.append(buffer)
        return buffer.device(write=True)

    def _value(self, slot: Slot) -> int:
        key = slot.key
        match slot.origin:
            case "size":
                return self._size(str(key))
            case "grid":
                return self._grid(str(key))
            case "dat" | "global" | "output":
                return self._dat(int(key)).buffer.address
            case "stride":
                dat = self._dat(int(key))
                assert isinstance(dat, Dat)
                return dat.stride
            case "position":
                dat = self._dat(int(key))
                assert isinstance(dat, Dat)
                assert dat.set.position is not None
                return self._keep(dat.set.position, slot.ctype)
            case "map":
                through = self.numbering.maps[int(key)]
                if isinstance(through, SlotPlaces):
                    return self._keep(through.table, slot.ctype)
                assert isinstance(through, TableMap)
                return self._keep(_stored_at(through.table, through.target), slot.ctype)
            case "partial" | "scratch":
                return self._work(slot)
            case "constants":
                self._constants = self._context.allocate(8 * max(1, len(self.entry.constants)))
                return self._constants.device()
            case "plan":
                return self._plan(slot)
        return self._ragged(slot)

    def _size(self, key: str) -> int:
        if key == "threads":
            return self.threads
        if key == "n" and self.over.most is not None:
            return self.over.most  # the places of the list of members, behind which their number lies
        if self.span is None:
            return self.over.size if key == "n" else 0
        return self.span.end if key == "n" else self.span.begin

    def _grid(self, key: str) -> int:
        grid = self.over.parent
        assert isinstance(grid, Grid)
        shape = (1,) * (3 - len(grid.shape)) + grid.shape
        length = shape[int(key[1:])]
        return length if key[0] == "n" else divisor(length)["qh".index(key[0])]

    def _ragged(self, slot: Slot) -> int:
        through = self.numbering.maps[int(slot.key)]
        assert isinstance(through, RaggedMap)
        part = slot.origin.removeprefix("ragged_")
        if part == "rows":
            return through.store.rows
        if slot.ctype == {"start": "int32_t *", "length": "uint8_t *"}.get(part):
            return self._keep(through.store.start32 if part == "start" else through.store.length8, slot.ctype)
        table = getattr(through.store, part)
        return self._keep(_stored_at(table, through.target) if part == "index" else table, slot.ctype)

    def _argument(self, key: str) -> tuple[int, ArgSpec]:
        for member in self.group.members:
            for arg in member.spec.args:
                if key in (f"{member.number}_{arg.parameter}", arg.parameter):
                    return member.number, arg
        raise KeyError(key)

    def _work(self, slot: Slot) -> int:
        number, arg = self._argument(str(slot.key))
        if slot.origin == "scratch":
            return self._allocate(self.over.parent.executed * arg.legs * arg.dim, arg.scalar.size)
        count = self.plans[number].partials
        if isinstance(self.over, Grid):
            count = max(count, self.over.size // self.over.shape[-1])
        if self.span is not None:
            count = max(count, -(-self.over.parent.stored // PART))
        if self._partials is None:
            return self._allocate(count * arg.dim, 8)
        if slot.name not in self._partials:
            self._partials[slot.name] = self._context.allocate(max(1, count * arg.dim) * 8)
        return self._partials[slot.name].device(write=True)

    def _plan(self, slot: Slot) -> int:
        if slot.name == "targets" and self.span is not None:
            return self.span.end
        if slot.name == "list" and isinstance(self.over, Subset) and self.over.most is not None:
            return self.over.members.address
        value = self._plan_value(slot.name)
        return value if isinstance(value, int) else self._keep(value, slot.ctype)

    def _plan_value(self, name: str) -> npt.NDArray[Any] | int:
        number, asked = 0, name
        if name.startswith(("seg_", "elem")):
            name, number = name.rstrip("0123456789"), int(name[len(name.rstrip("0123456789")) :])
        elif name.startswith("i") and name[1].isdigit():
            k, part = name[1:].split("_", 1)
            name = f"i@{id(self.numbering.maps[int(k)])}_{part}"
        plan = self.plans[number] if number in self.plans else next(iter(self.plans.values()))
        for candidate in (plan, *self.plans.values()):
            if name in candidate.values:
                return candidate.values[name]
        raise KeyError(f"plan table {asked}")


def divisor(number: int) -> tuple[int, int]:
    """Return ``q`` and ``h`` with ``i // number == i * q >> h`` for all ``i`` below 2^31; ``q`` has 32 bits.

    T. Granlund, P. Montgomery, *Division by invariant integers using multiplication*, PLDI 1994, section 4.
    """
    shift = 31 + (number - 1).bit_length()
    return -(-(1 << shift) // number), shift


def _set_word(word: npt.NDArray[np.int64], ctype: str, value: float | int | bool) -> None:
    """Write a constant as 8 bytes of its C type."""
    if ctype == "double":
        word.view(np.float64)[0] = float(value)
    elif ctype == "float":
        word.view(np.float32)[0] = np.float32(value)
    else:
        word[0] = int(value)


def _stored_at(elements: npt.NDArray[Any], over: Set) -> npt.NDArray[Any]:
    """Turn element numbers of a set into places in the storage of its dats."""
    return elements if over.position is None or not over.size else over.position[elements]
