"""Checkpoint files: rows in global order gathered from the ranks, checked by sums, published in one step.

A file is HDF5. The group ``checkpoint`` holds the data sets; ``checkpoint/meta`` is a text (JSON) that says what
they are and what their CRC-32 is; the attribute ``complete`` of the group is the CRC-32 of that text. Behind the end of
what HDF5 knows stand ``fluxloom`` and the CRC-32 of all bytes before, four of them, the lowest first: a byte that has
changed anywhere, in what HDF5 keeps for itself too, is found. Where that sum is wrong the file is not opened: HDF5 may
look for ever in a damaged one. Where there is none, as in a file that was cut off, those of the data sets are compared.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.comm.disk import Disk, publish, require_writable
from fluxloom.comm.rows import from_first, to_first
from fluxloom.core.errors import CheckpointError, FluxloomError
from fluxloom.core.packages import require
from fluxloom.core.sizes import check_stored

__all__ = ["FORMAT", "VERSION", "StoreReader", "StoreWriter", "check_place"]

FORMAT, VERSION = "fluxloom checkpoint", 2
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_MARK = b"fluxloom"
"""Before the check sum of a whole file."""
_BLOCK_BYTES = 2**26
"""Bytes of rows that are on their way at once."""

Rows = npt.NDArray[Any]
Numbers = npt.NDArray[np.int64]


class StoreWriter:
    """Writes one checkpoint beside its final place; `finish` puts it there.

    All methods are collective. When one of them raises, the file that was there before is untouched.

    Parameters
    ----------
    path
        Where the file will be.
    comm
        The ranks; rank 0 writes.
    keep
        How many checkpoints are kept: ``path``, ``path.1``, ``path.2`` ...

    Raises
    ------
    CheckpointError
        When the file cannot be made.
    DeviceUnavailable
        When h5py is not installed.
    """

    def __init__(self, path: Path, comm: Comm, keep: int = 1) -> None:
        self.path, self.comm, self._keep = path, comm, keep
        self._disk: Disk | None = None
        self._file: Any = None
        self._group: Any = None
        self._sums: dict[str, int] = {}
        self.nbytes = 0
        """Bytes of values written so far."""
        with _Agreed(self) as step:
            if step.mine:
                self._open()

    def _open(self) -> None:
        h5py = require("h5py", "mesh", "writing checkpoints")
        self._disk = Disk(self.path.with_name(self.path.name + ".part"))
        self._file = h5py.File(self._disk, "w")
        self._group = self._file.create_group("checkpoint")

    def rows(self, key: str, values: Rows, numbers: Numbers | None, total: int) -> None:
        """Write the rows of all ranks in the order of their global numbers.

        Parameters
        ----------
        key
            Name of the data set.
        values
            ``(rows here, components)``, contiguous.
        numbers
            Their global numbers, ``(rows here,)``; None: this rank is alone and has all in order.
        total
            Rows of all ranks together. When they are all equal only one is stored.
        """
        single = _single(self.comm, values)
        blocks = iter([single]) if single is not None else _gathered(self.comm, values, numbers, total)
        count = total if single is None else len(single)
        dataset: Any = None
        with _Agreed(self) as step:
            if step.mine:
                dataset = self._group.create_dataset(key, (count, values.shape[1]), values.dtype)
                self._disk_check()
        place, crc = 0, 0
        for block in blocks:
            with _Agreed(self) as step:
                if step.mine and len(block):
                    dataset[place : place + len(block)] = block
                    crc = zlib.crc32(block.view(np.uint8).data, crc)
                    self._disk_check()
            place += len(block)
        self._sums[key] = crc
        self.nbytes += count * values.shape[1] * values.itemsize

    def finish(self, meta: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Write small arrays and the description, make sure that all is on the disk, and publish the file."""
        with _Agreed(self) as step:
            if step.mine:
                self._finish(meta, arrays)

    def _finish(self, meta: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        disk = self._disk
        assert disk is not None
        for key, array in arrays.items():
            self._group.create_dataset(key, data=array)
            self._sums[key] = zlib.crc32(np.ascontiguousarray(array).tobytes())
        text = json.dumps({**meta, "sums": self._sums}).encode()
        self._group.create_dataset("meta", data=np.frombuffer(text, dtype=np.uint8))
        attributes = {k: v for k, v in meta.items() if isinstance(v, (int, float)) or (isinstance(v, str) and v)}
        for key, value in attributes.items():
            self._group.attrs[key] = value if not isinstance(value, str) else value[:1000]
        self._file.attrs["format"], self._file.attrs["version"] = FORMAT, VERSION
        self._file.flush()
        self._group.attrs["complete"] = zlib.crc32(text)
        self._file.close()
        self._disk_check()
        end = disk.seek(0, 2)
        disk.write(memoryview(_MARK + _sum_of(disk, end).to_bytes(4, "little")))
        self._disk_check()
        disk.sync()
        publish(disk.path, self.path, self._keep)
        disk.close()

    def discard(self) -> None:
        """Remove what was written; not collective."""
        if self._disk is not None:
            self._disk.give_up()
            if self._file:
                self._file.close()
            self._disk.remove()

    def _disk_check(self) -> None:
        assert self._disk is not None
        self._disk.check()


class _Agreed:
    """A piece of work of rank 0: when it fails there, every rank raises `CheckpointError`."""

    def __init__(self, writer: StoreWriter) -> None:
        self._writer = writer
        self.mine = writer.comm.rank == 0

    def __enter__(self) -> _Agreed:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: Any) -> None:
        writer = self._writer
        if error is not None and not isinstance(error, Exception):
            return
        told = writer.comm.broadcast(None if error is None else _reason(error))
        if told is not None:
            writer.discard()
            if isinstance(error, FluxloomError):
                return
            raise CheckpointError(f"{writer.path}: this checkpoint cannot be written: {told}") from error


def _reason(error: BaseException) -> str:
    if isinstance(error, BlockingIOError):
        return "another run is writing to the same file: give each run a path of its own"
    if isinstance(error, OSError) and error.strerror:
        hint = {28: "; free some space, or give a path on another disk", 122: "; the quota of this disk is used up"}
        return f"{error.strerror}{hint.get(error.errno or 0, '')}"
    return str(error).splitlines()[0]


# ------------------------------------------------------------------------------------------ reading


class StoreReader:
    """Reads a checkpoint; the file stays open, and is the one that was checked, until `close`.

    All methods except `close` are collective.

    Attributes
    ----------
    meta
        The description that was given to `StoreWriter.finish`.
    arrays
        The small arrays.

    Raises
    ------
    CheckpointError
        When the file is cut off, damaged, or not a checkpoint.
    DeviceUnavailable
        When h5py is not installed.
    """

    def __init__(self, path: Path, comm: Comm) -> None:
        self.path, self.comm = path, comm
        self._file: Any = None
        found: tuple[str, Any, Any] = ("", None, None)
        if comm.rank == 0:
            found = self._load()
        problem, self.meta, self.arrays = comm.broadcast(found)
        if problem:
            older = sorted(p.name for p in path.parent.glob(path.name + ".[0-9]*"))
            advice = f"restart from {older[0]}" if older else "remove it to start from the beginning"
            self.close()
            raise CheckpointError(f"{path}: {problem}; {advice}")

    def _load(self) -> tuple[str, Any, Any]:
        """Return what is wrong, or an empty text; the description; the small arrays."""
        h5py = require("h5py", "mesh", "reading checkpoints")
        try:
            sound = _sound(self.path)
            if sound is False:
                return "the checkpoint is cut off or damaged (the check sum of the file)", None, None
            self._file = h5py.File(self.path, "r")
            return self._checked(self._file, sound is True)
        except PermissionError:
            return "it may not be read: change its permissions", None, None
        except (OSError, RuntimeError, KeyError, ValueError, TypeError, AttributeError) as error:
            return f"the checkpoint is cut off or damaged ({_reason(error)})", None, None

    @staticmethod
    def _checked(file: Any, sound: bool) -> tuple[str, Any, Any]:
        if file.attrs.get("format") != FORMAT:
            return "this is no checkpoint of fluxloom", None, None
        if file.attrs["version"] != VERSION:
            return f"written in version {file.attrs['version']} of the format, this is version {VERSION}", None, None
        group = file["checkpoint"]
        check_stored(group)
        text = np.asarray(group["meta"]).tobytes()
        if group.attrs.get("complete", -1) != zlib.crc32(text):
            return "the checkpoint is not complete or its description is damaged", None, None
        meta = json.loads(text)
        arrays: dict[str, npt.NDArray[Any]] = {}
        for key, expected in meta.pop("sums").items():
            crc = 0
            for block in () if sound else _stored(group[key]):
                crc = zlib.crc32(np.ascontiguousarray(block).tobytes(), crc)
            if not sound and crc != expected:
                return f"the values of {key} are damaged (their check sum differs)", None, None
            if not key.startswith("rows/"):
                arrays[key] = np.asarray(group[key])
        if not sound:
            return "the checkpoint is cut off or damaged, though not its values (the check sum of the file)", None, None
        return "", meta, arrays

    def rows(self, key: str, numbers: Numbers | None, count: int, total: int, like: Rows) -> Rows:
        """Return the rows of this rank, ``(count, components)``.

        Parameters
        ----------
        key
            Name of the data set.
        numbers
            Global numbers of the rows wanted; None: all, in order.
        count, total
            Rows wanted here, and rows in the file.
        like
            An array ``(0, components)`` of their type.

        Raises
        ------
        CheckpointError
            When the file has no such rows.
        """
        dataset, problem, single = None, "", None
        if self._file is not None:
            dataset, problem = self._data(key, total, like)
            single = np.asarray(dataset) if dataset is not None and len(dataset) == 1 else None
        problem, single = self.comm.broadcast((problem, single))
        if problem:
            raise CheckpointError(f"{self.path}: {problem}; remove it to start from the beginning")
        if single is not None:
            return np.repeat(single, count, axis=0)
        out = np.empty((count, like.shape[1]), dtype=like.dtype)
        if numbers is None and dataset is not None:
            out[...] = dataset[...]
            return out
        assert numbers is not None
        order = np.argsort(numbers, kind="stable")
        ascending = numbers[order]
        for begin, end in _spans(total, like):
            low, high = np.searchsorted(ascending, (begin, end))
            block = dataset[begin:end] if dataset is not None else like
            out[order[low:high]] = self._scatter(block, ascending[low:high] - begin)
        return out

    def _data(self, key: str, total: int, like: Rows) -> tuple[Any, str]:
        """Return a data set, and why it does not hold the rows; an empty text: it does."""
        try:
            dataset = self._file["checkpoint"][key]
            form = dataset.shape, dataset.dtype
        except (KeyError, AttributeError, OSError, RuntimeError, TypeError, ValueError) as error:
            return None, f"the values of {key} are missing ({_reason(error)})"
        if form[0] not in ((total, like.shape[1]), (1, like.shape[1])) or form[1] != like.dtype:
            return None, f"the values of {key} are {form[1]} {form[0]}, not {like.dtype} {(total, like.shape[1])}"
        return dataset, ""

    def _scatter(self, block: Rows, wanted: Numbers) -> Rows:
        """Return the rows wanted here of a block that rank 0 has."""
        asked = to_first(self.comm, wanted)
        return from_first(self.comm, [block[rows] for rows in asked], block)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


# ------------------------------------------------------------------------------------- the whole file


def _sum_of(file: Disk | BinaryIO, end: int) -> int:
    """Return the CRC-32 of the bytes of a file before a place, where it is left."""
    file.seek(0)
    crc = 0
    for begin in range(0, end, _BLOCK_BYTES):
        crc = zlib.crc32(file.read(min(_BLOCK_BYTES, end - begin)), crc)
    return crc


def _sound(path: Path) -> bool | None:
    """Whether a file is what the check sum behind it says; None: there is none."""
    with path.open("rb") as file:
        end = file.seek(0, 2) - len(_MARK) - 4
        if end < 0:
            return None
        crc = _sum_of(file, end)
        mark = file.read()
        return mark == _MARK + crc.to_bytes(4, "little") if mark.startswith(_MARK) else None


# ------------------------------------------------------------------------------------------- blocks


def _spans(total: int, like: Rows) -> Iterator[tuple[int, int]]:
    size = max(1, _BLOCK_BYTES // max(1, like.shape[1] * like.itemsize))
    for begin in range(0, total, size):
        yield begin, min(total, begin + size)


def _stored(dataset: Any) -> Iterator[npt.NDArray[Any]]:
    """Yield a data set piece by piece."""
    if dataset.ndim != 2:
        yield np.asarray(dataset)
        return
    for begin, end in _spans(len(dataset), np.empty((0, dataset.shape[1]), dataset.dtype)):
        yield dataset[begin:end]


def _gathered(comm: Comm, values: Rows, numbers: Numbers | None, total: int) -> Iterator[Rows]:
    """Yield blocks of consecutive global rows, on rank 0; empty ones elsewhere."""
    if numbers is None:
        for begin, end in _spans(total, values):
            yield values[begin:end]
        return
    order = np.argsort(numbers, kind="stable")
    ascending = numbers[order]
    for begin, end in _spans(total, values):
        low, high = np.searchsorted(ascending, (begin, end))
        rows, places = to_first(comm, values[order[low:high]]), to_first(comm, ascending[low:high] - begin)
        if comm.rank:
            yield values[:0]
            continue
        block = np.empty((end - begin, values.shape[1]), dtype=values.dtype)
        for place, row in zip(places, rows, strict=True):
            block[place] = row
        yield block


def _single(comm: Comm, values: Rows) -> Rows | None:
    """Return the one row ``(1, components)`` that all rows of all ranks are, bit by bit, if it is so."""
    words = values.view(np.uint8)
    same = True
    for begin in range(0, len(values), 2**16):
        same = bool((words[begin : begin + 2**16] == words[0]).all())
        if not same:
            break
    found = comm.allgather((same, values[:1].tobytes()))
    firsts = {first for _, first in found if first}
    if len(firsts) != 1 or not all(equal for equal, _ in found):
        return None
    return np.frombuffer(firsts.pop(), dtype=values.dtype).reshape(1, -1)


def check_place(path: Path, comm: Comm, *, replaced: bool = False) -> None:
    """Raise `CheckpointError` on every rank when rank 0 cannot make files beside ``path``, or one has no h5py.

    Where the file there is to be ``replaced`` it must not be something else than a checkpoint, whole or damaged.
    """
    require("h5py", "mesh", "checkpoints")
    problem = ""
    if comm.rank == 0:
        problem = require_writable(path) or (_foreign(path) if replaced else "")
    problem = comm.broadcast(problem)
    if problem:
        raise CheckpointError(f"{path}: checkpoints cannot be written here: {problem}")


def _foreign(path: Path) -> str:
    """Return why a file is certainly no checkpoint, or an empty text."""
    h5py = require("h5py", "mesh", "checkpoints")
    other = "there is another file of that name, which is no checkpoint: give another path"
    try:
        with path.open("rb") as file:
            head = file.read(len(_SIGNATURE))
        if not head:
            return ""
        if head != _SIGNATURE:
            return other
        with h5py.File(path, "r") as found:
            return "" if found.attrs.get("format") == FORMAT else other
    except (OSError, RuntimeError, KeyError):
        return ""  # not there, or a damaged one
