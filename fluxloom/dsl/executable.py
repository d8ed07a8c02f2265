"""From a generated function to a call: the argument block, its addresses, its constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.group import Group
from fluxloom.codegen.spec import ArgSpec, Entry, Slot
from fluxloom.device.base import Buffer
from fluxloom.dsl.bind import Numbering
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.maps import RaggedMap, TableMap
from fluxloom.dsl.plan import Plan
from fluxloom.dsl.sets import Grid, Set

__all__ = ["ArgumentBlock"]


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
    ) -> None:
        self.entry, self.group, self.numbering = entry, group, numbering
        self.plans, self.over, self.threads = plans, over, threads
        self.words = np.zeros(len(entry.slots), dtype=np.int64)
        self._kept: list[Any] = []
        self._place = {s.name: k for k, s in enumerate(entry.slots)}
        self._by_key = {a.dat: a for m in group.members for a in m.spec.args}
        for k, slot in enumerate(entry.slots):
            if slot.origin != "constant":
                self.words[k] = self._value(slot)
        for name, value in constants.items():
            self.set_constant(name, value)

    @property
    def address(self) -> int:
        """Address of the block."""
        return self.words.ctypes.data

    def set_constant(self, name: str, value: float | int | bool) -> None:
        """Change a run-time constant."""
        k = self._place.get("c" + name)
        if k is None:
            return  # the body does not read it
        if self.entry.slots[k].ctype == "double":
            self.words[k : k + 1].view(np.float64)[0] = float(value)
        else:
            self.words[k] = int(value)

    def point(self, dat: int, buffer: Buffer, *, output: bool = False) -> None:
        """Let a dat number stand for another buffer."""
        k = self._place.get(f"d{dat}o" if output else f"d{dat}")
        if k is not None:
            self.words[k] = buffer.address

    def kept(self, items: list[npt.NDArray[Any]]) -> None:
        """Keep arrays alive as long as this block."""
        self._kept += items

    def refresh(self) -> None:
        """Take the buffers that the dats have now."""
        for slot in self.entry.slots:
            if slot.origin in ("dat", "global", "output"):
                self.words[self._place[slot.name]] = self._dat(int(slot.key)).buffer.address

    # ------------------------------------------------------------------------------------ values
    def _dat(self, number: int) -> Dat | Global:
        return self.numbering.dats[number]

    def _keep(self, array: npt.NDArray[Any], ctype: str) -> int:
        """Return the address of an array after making sure that it has the type C expects."""
        types = {"int32_t *": np.int32, "int64_t *": np.int64, "uint8_t *": np.uint8, "double *": np.float64}
        array = np.ascontiguousarray(array, dtype=types.get(ctype))
        if not array.size:
            array = np.zeros(1, dtype=array.dtype)
        self._kept.append(array)
        return array.ctypes.data

    def _value(self, slot: Slot) -> int:
        key = slot.key
        match slot.origin:
            case "size":
                return self.over.size if key == "n" else self.threads
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
                assert isinstance(through, TableMap)
                return self._keep(_stored_at(through.table, through.target), slot.ctype)
            case "partial" | "scratch":
                return self._work(slot)
            case "plan":
                return self._plan(slot)
        return self._ragged(slot)

    def _grid(self, key: str) -> int:
        assert isinstance(self.over, Grid)
        shape = (1,) * (3 - len(self.over.shape)) + self.over.shape
        return shape[int(key[1:])]

    def _ragged(self, slot: Slot) -> int:
        through = self.numbering.maps[int(slot.key)]
        assert isinstance(through, RaggedMap)
        part = slot.origin.removeprefix("ragged_")
        if part == "rows":
            return through.store.rows
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
            size = self.over.parent.size * arg.legs * arg.dim
            return self._keep(np.zeros(size, dtype=arg.scalar.numpy), "")
        count = self.plans[number].partials
        if isinstance(self.over, Grid):
            count = max(count, self.over.size // self.over.shape[-1])
        dtype = np.float64 if arg.scalar.floating else np.int64
        return self._keep(np.zeros(max(1, count) * arg.dim, dtype=dtype), slot.ctype)

    def _plan(self, slot: Slot) -> int:
        name, number = slot.name, 0
        if name.startswith(("seg_", "elem")):
            name, number = name.rstrip("0123456789"), int(name[len(name.rstrip("0123456789")) :])
        elif name.startswith("i") and name[1].isdigit():
            k, part = name[1:].split("_", 1)
            name = f"i@{id(self.numbering.maps[int(k)])}_{part}"
        plan = self.plans[number] if number in self.plans else next(iter(self.plans.values()))
        for candidate in (plan, *self.plans.values()):
            if name in candidate.values:
                value = candidate.values[name]
                return value if isinstance(value, int) else self._keep(value, slot.ctype)
        raise KeyError(f"plan table {slot.name}")


def _stored_at(elements: npt.NDArray[Any], over: Set) -> npt.NDArray[Any]:
    """Turn element numbers of a set into places in the storage of its dats."""
    return elements if over.position is None or not over.size else over.position[elements]
