"""A checkpoint as a file: the rows of dats in global order, the log of globals, and what they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.comm.store import StoreReader, StoreWriter
from fluxloom.core.dtypes import Blocked
from fluxloom.core.errors import CheckpointError
from fluxloom.dsl.checkpoint.log import GlobalLog
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.sets import Grid

__all__ = ["Entry", "Restored", "numbers_of", "rows_of", "save", "set_rows", "total_of", "write_end"]


@dataclass(frozen=True)
class Entry:
    """Where in a run a checkpoint was entered.

    Attributes
    ----------
    call, step
        Calls of loops and chains so far, this one included; number of the step in it.
    sequence
        Rolling check sum of the names of all calls so far.
    loop
        The loop that comes next.
    """

    call: int
    step: int
    sequence: int
    loop: str


# --------------------------------------------------------------------------------------------- dats


def _layers(dat: Dat) -> Grid | None:
    """Return the lattice of a dat whose storage has layers around the elements."""
    return dat.set if isinstance(dat.set, Grid) and any(dat.set.ghost) else None


def numbers_of(dat: Dat) -> npt.NDArray[np.int64] | None:
    """Return the global numbers of the rows of a dat; None where this rank has all, in order.

    Raises
    ------
    CheckpointError
        When the set has no global numbers.
    """
    part = dat.set.part
    if part is None and not dat.context.distributed:
        return None
    if part is None:
        raise CheckpointError(
            f"dat {dat.name!r}: the elements of {dat.set} have no global numbers, so that a checkpoint of several "
            "ranks cannot hold them; run on one rank"
        )
    if (grid := _layers(dat)) is not None:
        return grid.held()[1]
    return np.asarray(part.numbers[: dat.set.size], dtype=np.int64)


def _count(dat: Dat) -> int:
    """Return the rows of a dat on this rank: its elements, and the ghosts that only the host may have set."""
    grid = _layers(dat)
    return dat.set.size if grid is None else grid.held()[0].size


def total_of(dat: Dat) -> int:
    """Return the rows of a dat that a file has, of all ranks."""
    grid = _layers(dat)
    return dat.set.total if grid is None else grid.held()[2]


def rows_of(dat: Dat) -> npt.NDArray[Any]:
    """Return a copy of the values of a dat on this rank, ``(rows, components)``."""
    grid = _layers(dat)
    if grid is None:
        return dat.read().reshape(dat.set.size, dat.dim)
    stored = dat._stored(write=False)
    if isinstance(dat.layout, Blocked):
        stored = stored.reshape(dat.stride, dat.dim)
    return np.ascontiguousarray(stored[grid.held()[0]])


def set_rows(dat: Dat, rows: npt.NDArray[Any]) -> None:
    """Set the values of a dat on this rank, from rows in the order of `numbers_of`."""
    grid = _layers(dat)
    if grid is None:
        dat.write(rows.reshape(*dat.set.shape, *dat.shape))
        return
    place = grid.held()[0]
    dat.version += 1
    stored = dat._stored(write=True)
    if isinstance(dat.layout, Blocked):
        stored[place // dat.layout.size, place % dat.layout.size] = rows
    else:
        stored[place] = rows
    dat.buffer.publish()


def save(writer: StoreWriter, number: int, dat: Dat, rows: npt.NDArray[Any] | None = None) -> None:
    """Write the values of a dat: as they are now, or as they were copied before."""
    writer.rows(f"rows/{number:04d}", rows_of(dat) if rows is None else rows, numbers_of(dat), total_of(dat))


# ---------------------------------------------------------------------------------- the whole file


def write_end(
    writer: StoreWriter, entry: Entry, case: str, texts: Sequence[str], dats: dict[int, Dat],
    log: GlobalLog, values: Sequence[npt.NDArray[Any]],
) -> None:  # fmt: skip
    """Complete a file and publish it.

    Parameters
    ----------
    entry, case
        Where it was entered; the text of the case.
    texts
        What distinct calls there were before the entry, in order of their first appearance.
    dats
        What was saved, by number.
    log, values
        The log of globals, and their values at the entry.
    """
    meta = {
        **asdict(entry),
        "case": case,
        "texts": list(texts),
        "globals": [item.name for item in log.globals[: len(values)]],
        "dats": {
            str(number): {"name": d.name, "dtype": d.scalar.name, "shape": d.shape, "rows": total_of(d)}
            for number, d in dats.items()
        },
    }
    writer.finish(meta, log.arrays(values, entry.call))


class Restored:
    """A checkpoint that a run is to continue from.

    Parameters
    ----------
    path, comm
        The file, and who reads it.
    case
        Text of the case of this run.

    Raises
    ------
    CheckpointError
        When the file is damaged, or belongs to another case.
    """

    def __init__(self, path: Path, comm: Comm, case: str) -> None:
        self.path = path
        self._reader = StoreReader(path, comm)
        meta = self._reader.meta
        try:
            self.entry = Entry(meta["call"], meta["step"], meta["sequence"], meta["loop"])
            self.texts: list[str] = meta["texts"]
            self._dats: dict[int, dict[str, Any]] = {int(k): v for k, v in meta["dats"].items()}
            self._names: list[str] = meta["globals"]
            before: str = meta["case"]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self._reader.close()
            raise CheckpointError(f"{path}: its description is damaged ({error!r}); remove it to start from the "
                                  "beginning") from None
        if before != case:
            self._reader.close()
            self._refuse(f"the case file changed: {_first_difference(before, case)}")

    def _refuse(self, what: str) -> NoReturn:
        raise CheckpointError(
            f"{self.path}: {what}; go back to the program and the case that wrote the checkpoint, or remove it to "
            "start from the beginning"
        )

    def check_call(self, number: int, text: str) -> None:
        """Raise `CheckpointError` when a new call is not the one that the first run had here."""
        if number >= len(self.texts):
            self._refuse(f"{text} is called, which the first run did not call before the checkpoint")
        if self.texts[number] != text:
            known = self.texts[number]
            self._refuse(f"another sequence of loops: {text} is called, where the first run called {known}")

    def check_entry(self, entry: Entry) -> None:
        """Raise `CheckpointError` when the run has come to the entry by another way."""
        if entry.sequence != self.entry.sequence:
            self._refuse(f"another sequence of loops led to call {entry.call}, {entry.loop}")

    def ended_early(self, calls: int) -> NoReturn:
        """Raise `CheckpointError`: the program ended before the entry."""
        self._refuse(
            f"the program ended after {calls} calls of loops and chains, the checkpoint was taken before "
            f"{self.entry.loop} in call {self.entry.call}"
        )

    def load_log(self, log: GlobalLog) -> None:
        """Give a log what the file holds."""
        log.load(self._reader.arrays, len(self._names))

    def restore(self, dats: Sequence[Dat], log: GlobalLog) -> None:
        """Set dats and globals to what they were at the entry.

        Parameters
        ----------
        dats
            All dats met so far, by number.

        Raises
        ------
        CheckpointError
            When a dat is not that of the file: its name, type, shape or the size of its set.
        """
        for number, about in self._dats.items():
            if number >= len(dats):
                self._refuse(f"there is no dat for {about['name']!r}")
            self._check(dats[number], about)
        for number in self._dats:
            dat = dats[number]
            like = np.empty((0, dat.dim), dtype=dat.scalar.numpy)
            rows = self._reader.rows(f"rows/{number:04d}", numbers_of(dat), _count(dat), total_of(dat), like)
            set_rows(dat, rows)
        log.restore(self._reader.arrays, self._names, str(self.path))
        self.close()

    def _check(self, dat: Dat, about: dict[str, Any]) -> None:
        here = {"name": dat.name, "dtype": dat.scalar.name, "shape": list(dat.shape), "rows": total_of(dat)}
        for key, value in here.items():
            if about[key] != value:
                what = f"set {dat.set.name!r} has {value} elements, there were {about[key]}" if key == "rows" else (
                    f"its {key} is {value}, it was {about[key]}"
                )
                self._refuse(f"dat {about['name']!r} differs: {what}")

    def close(self) -> None:
        """Close the file."""
        self._reader.close()


def _first_difference(old: str, new: str) -> str:
    before, after = old.splitlines(), new.splitlines()
    for k in range(max(len(before), len(after))):
        a = before[k] if k < len(before) else "(nothing)"
        b = after[k] if k < len(after) else "(nothing)"
        if a != b:
            return f"line {k + 1} was {a.strip()!r}, is {b.strip()!r}"
    return "its line ends differ"
