"""The state of a run: all that its next step reads, and the one file that keeps it.

A state has dats, by global rows, so that other numbers of ranks and other devices can go on from it; globals; numbers
of the host, as JSON has them; and tables of the host, arrays such as the rows of a history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.comm.store import StoreReader, StoreWriter
from fluxloom.core.errors import CheckpointError
from fluxloom.dsl.checkpoint.file import numbers_of, rows_of, set_rows, total_of
from fluxloom.dsl.declare.dats import Dat, Global

__all__ = ["State", "StateFile", "write_state"]

_KIND, _VERSION = "state", 1

Table = npt.NDArray[Any]


@dataclass(frozen=True)
class State:
    """All that the next step of a run reads.

    Attributes
    ----------
    dats, globals
        Those themselves, by name: who writes a state reads them then, who restores one has set them before.
    numbers
        Of the host, by name: what JSON can hold.
    tables
        Of the host, by name: arrays, the same on every rank.
    """

    dats: Mapping[str, Dat]
    globals: Mapping[str, Global]
    numbers: Mapping[str, Any]
    tables: Mapping[str, Table]


def write_state(path: Path, comm: Comm, state: State, about: Mapping[str, Any], keep: int = 1) -> int:
    """Write a state; the file that was there stays whole until the new one is. Collective.

    Parameters
    ----------
    path
        Of the file.
    comm
        The ranks; rank 0 writes, and its numbers and tables count.
    state
        What is written.
    about
        More numbers, for who reads it: what it is of.
    keep
        As in `fluxloom.comm.store.StoreWriter`.

    Returns
    -------
    int
        Bytes of the values of dats.

    Raises
    ------
    CheckpointError
        When it cannot be written; nothing has changed then.
    DeviceUnavailable
        When h5py is not installed.
    """
    values = Global.read_all(list(state.globals.values()))
    writer = StoreWriter(path, comm, keep)
    try:
        for k, dat in enumerate(state.dats.values()):
            spare = _has_spare(dat)
            rows = dat.read_places().reshape(dat.set.stored, dat.dim) if spare else rows_of(dat)
            writer.rows(f"rows/{k:05d}", rows, None if spare else numbers_of(dat), _rows(dat))
        arrays = {f"globals/{k:05d}": np.asarray(value) for k, value in enumerate(values)}
        arrays |= {f"tables/{k:05d}": np.asarray(table) for k, table in enumerate(state.tables.values())}
        meta = {
            "kind": _KIND, "state": _VERSION, "about": dict(about), "numbers": dict(state.numbers),
            "dats": [[key, dat.name, dat.scalar.name, list(dat.shape), _rows(dat)] for key, dat in state.dats.items()],
            "globals": list(state.globals), "tables": list(state.tables),
        }  # fmt: skip
        writer.finish(meta, arrays)
    except BaseException:
        writer.discard()
        raise
    return writer.nbytes


def _has_spare(dat: Dat) -> bool:
    """Whether values behind the elements belong to the state: maps lead there, on one rank, and loops never come."""
    return dat.set.stored > dat.set.size and not dat.context.distributed


def _rows(dat: Dat) -> int:
    return dat.set.stored if _has_spare(dat) else total_of(dat)


class StateFile:
    """A state in a file. The file stays open until `close`. All methods but `close` are collective.

    Parameters
    ----------
    path, comm
        The file, and who reads it.

    Attributes
    ----------
    about, numbers, tables
        As they were given to `write_state`.
    dats, globals
        Names of what is in the file.

    Raises
    ------
    CheckpointError
        When the file is damaged, or holds no state.
    DeviceUnavailable
        When h5py is not installed.
    """

    def __init__(self, path: Path, comm: Comm) -> None:
        self.path = path
        self._reader = StoreReader(path, comm)
        meta, arrays = self._reader.meta, self._reader.arrays
        try:
            if meta.get("kind") != _KIND or meta["state"] != _VERSION:
                self._refuse("it was written by an older or another version of fluxloom, from which no run goes on")
            self.about: dict[str, Any] = meta["about"]
            self.numbers: dict[str, Any] = meta["numbers"]
            self._rows = {row[0]: (k, *row[1:]) for k, row in enumerate(meta["dats"])}
            self._values = {key: arrays[f"globals/{k:05d}"] for k, key in enumerate(meta["globals"])}
            self.tables: dict[str, Table] = {key: arrays[f"tables/{k:05d}"] for k, key in enumerate(meta["tables"])}
        except (KeyError, TypeError, ValueError, IndexError) as error:
            self.close()
            raise CheckpointError(f"{path}: its description is damaged ({error!r})") from None
        except CheckpointError:
            self.close()
            raise
        self.dats, self.globals = list(self._rows), list(self._values)

    def _refuse(self, what: str) -> NoReturn:
        raise CheckpointError(f"{self.path}: {what}")

    def misfit(self, key: str, item: Dat | Global | None) -> str:
        """Return why what the file has of this name cannot be that of a dat or a global; empty: it can."""
        if isinstance(item, Global):
            value = self._values.get(key)
            if value is None or value.shape != item.shape:
                theirs = None if value is None else value.shape
                return f"global {key!r} has the shape {item.shape}, in the file {theirs}"
            return ""
        if item is None or key not in self._rows:
            return f"there is no {key!r} {'in the file' if item is not None else 'now'}"
        _, _, dtype, shape, rows = self._rows[key]
        if (dtype, tuple(shape)) != (item.scalar.name, item.shape):
            return f"{key!r} has {item.scalar.name} {item.shape}, in the file {dtype} {tuple(shape)}"
        if rows not in (_rows(item), total_of(item)) and not rows > total_of(item) == item.set.total:
            return f"{key!r} has {total_of(item):,} elements, in the file {rows:,}"
        return ""

    def read(self, key: str) -> Table:
        """Return all values of a dat in the file, ``(rows, *shape)``, on a rank alone.

        Raises
        ------
        CheckpointError
            When there is none of this name.
        """
        if key not in self._rows:
            self._refuse(f"it has no {key!r}")
        number, _, dtype, shape, rows = self._rows[key]
        like = np.empty((0, int(np.prod(shape, dtype=np.int64))), dtype=dtype)
        return self._reader.rows(f"rows/{number:05d}", None, rows, rows, like).reshape(rows, *shape)

    def load(self, key: str, item: Dat | Global) -> None:
        """Set a dat or a global to what the file has of this name.

        Raises
        ------
        CheckpointError
            When it does not fit.
        """
        if problem := self.misfit(key, item):
            self._refuse(problem)
        if isinstance(item, Global):
            item.value = self._values[key]
            return
        number, rows = self._rows[key][0], self._rows[key][4]
        like = np.empty((0, item.dim), dtype=item.scalar.numpy)
        if _has_spare(item) and rows == item.set.stored:
            found = self._reader.rows(f"rows/{number:05d}", None, rows, rows, like)
            item.write_places(found.reshape(item.set.stored, *item.shape))
            return
        wanted = numbers_of(item)
        if wanted is None and rows > total_of(item):  # with spare places behind the elements
            wanted = np.arange(total_of(item), dtype=np.int64)
        count = total_of(item) if wanted is None else len(wanted)
        set_rows(item, self._reader.rows(f"rows/{number:05d}", wanted, count, rows, like))

    def close(self) -> None:
        """Close the file."""
        self._reader.close()
