"""A checkpoint while it is being taken: dats are saved when a loop first needs them, or never."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.comm.store import StoreWriter
from fluxloom.core.errors import CheckpointError
from fluxloom.dsl.checkpoint.file import Entry, rows_of, save
from fluxloom.dsl.checkpoint.place import Record
from fluxloom.dsl.checkpoint.rules import Use
from fluxloom.dsl.declare.dats import Dat

__all__ = ["Saving", "Written"]

_LONGEST = 512
"""Loops after which what has not been used is saved all the same."""


@dataclass(frozen=True)
class Written:
    """A checkpoint that was written.

    Attributes
    ----------
    entry
        Where in the run.
    dats
        Names of the saved dats.
    nbytes
        Bytes of their values in the file; a dat with the same value everywhere takes one row.
    """

    entry: Entry
    dats: tuple[str, ...]
    nbytes: int


class Saving:
    """From the entry of a checkpoint until every dat is either saved or known to be overwritten.

    Parameters
    ----------
    path, comm, keep
        As for `StoreWriter`.
    entry
        Where it is entered.
    record
        The calls so far.
    changed
        Dats whose values calls changed before the entry.
    values
        Values of the globals at the entry.

    Raises
    ------
    CheckpointError
        When the file cannot be made.
    """

    def __init__(
        self, path: Path, comm: Comm, keep: int, entry: Entry, record: Record, changed: Sequence[Dat],
        values: list[npt.NDArray[Any]],
    ) -> None:  # fmt: skip
        self.entry, self.values, self._comm = entry, values, comm
        self.texts = [met.call.text for met in record.calls]
        held = record.held()
        flags = {record.number(d) for d in [*changed, *record.host_changed(), *held]}
        mine = (flags, {record.number(d) for d in held})
        found = comm.allgather(mine)
        flagged = sorted(set[int]().union(*(numbers for numbers, _ in found)))
        at_once = sorted(set[int]().union(*(numbers for _, numbers in found)))
        self._numbers = {id(record.dats[n]): n for n in flagged}
        self._flagged: dict[int, Dat] = {id(record.dats[n]): record.dats[n] for n in flagged}
        self._versions = {key: dat.version for key, dat in self._flagged.items()}
        self._copies: dict[int, npt.NDArray[Any]] = {}
        self._looked = False
        self._loops = 0
        self.saved: dict[int, Dat] = {}
        self.writer = StoreWriter(path, comm, keep)
        # The host may change these any time without our knowing.
        for number in at_once:
            self._save(record.dats[number])

    @property
    def written(self) -> Written:
        """What was written."""
        return Written(self.entry, tuple(d.name for d in self.saved.values()), self.writer.nbytes)

    def before(self, use: Use) -> bool:
        """Save and leave out dats before a loop uses them; returns whether all is done.

        Raises
        ------
        CheckpointError
            When the file cannot be written, or the host has changed a dat before it was saved.
        """
        self._loops += 1
        state = self._state()
        if state == 2:
            raise CheckpointError("the host has changed a dat before it was saved, through an array or unseen")
        if state == 1:
            self.rest()
        for dat in use.needed:
            if id(dat) in self._flagged:
                self._save(dat)
        for dat in use.overwritten:
            self._flagged.pop(id(dat), None)
        return not self._flagged

    def _state(self) -> int:
        """Return 0: go on; 1: what is left has to be saved now; 2: it is too late for that (agreed by all ranks)."""
        late = any(d.version != self._versions[k] for k, d in self._flagged.items() if k not in self._copies)
        state = 2 if late else int(self._looked or self._loops > _LONGEST)
        return int(self._comm.reduce(np.array([state]), "max")[0]) if self._comm.size > 1 else state

    def looked(self) -> None:
        """The host looks at something, and may change it: copy what is not saved yet. Not collective."""
        self._looked = True
        for key, dat in self._flagged.items():
            if key not in self._copies:
                self._copies[key] = rows_of(dat)

    def rest(self) -> None:
        """Save all that is left."""
        for dat in list(self._flagged.values()):
            self._save(dat)

    def _save(self, dat: Dat) -> None:
        if self._flagged.pop(id(dat), None) is not None:
            number = self._numbers[id(dat)]
            save(self.writer, number, dat, self._copies.pop(id(dat), None))
            self.saved[number] = dat
