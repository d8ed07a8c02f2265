"""CGNS in ADF files, the older container, read without a library.

A file is a header, and nodes, tables and chunks of data that point to one another with pairs of a block (of 4096 bytes)
and an offset in it. Version A writes pointers and sizes in hexadecimal digits, version B in binary.

Source: CGNS "ADF User's Guide" (appendix on the file format), and the sizes of the structures found in files.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Literal, NoReturn

import numpy as np

from fluxloom.core.errors import MeshError
from fluxloom.mesh.io.cgns.tree import Array, Node, no_array

__all__ = ["is_adf", "read_adf"]

_BLOCK = 4096
_POINTER = 12
_NAME = 32
_HEADER = 186
_NODE = 246
_ENTRY = _NAME + _POINTER
_TYPES = {"C1": "S1", "B1": "u1", "I4": "i4", "I8": "i8", "U4": "u4", "U8": "u8", "R4": "f4", "R8": "f8"}
_WHAT = b"@(#)ADF Database Version"


def is_adf(head: bytes) -> bool:
    """Whether a file that begins so is an ADF file; its first four bytes have their high bit set."""
    return bytes(byte & 0x7F for byte in head[: len(_WHAT)]) == _WHAT


def read_adf(path: str, data: bytes | memoryview) -> Node:
    """Return the root of an ADF file.

    Parameters
    ----------
    path
        Of the file, for messages.
    data
        All of its bytes; arrays are read from them when they are asked for.

    Raises
    ------
    MeshError
        For a damaged file, a link to another file, and numbers in a format other than IEEE.
    """
    return _File.open(path, memoryview(data)).root()


@dataclass(frozen=True, eq=False)
class _File:
    """An open file: its bytes, whether pointers are binary, the order of the bytes of numbers, and nodes seen."""

    path: str
    data: memoryview
    binary: bool
    order: Literal["<", ">"]
    seen: set[int] = field(default_factory=set)

    @classmethod
    def open(cls, path: str, data: memoryview) -> _File:
        head = bytes(data[:_HEADER])
        if len(head) < _HEADER or not is_adf(head):
            raise MeshError(f"{path}: not an ADF file, or cut off in its header")
        version, numbers = head[25:26].decode("latin-1"), head[100:101]
        if numbers not in b"LB":
            raise MeshError(
                f"{path}: ADF numbers in the format {numbers!r} are not supported, only IEEE; convert to HDF5"
            )
        if version not in "AB":
            raise MeshError(f"{path}: ADF version {version!r} is not supported, only A and B; convert to HDF5")
        return cls(path, data, version == "B", "<" if numbers == b"L" else ">")

    def root(self) -> Node:
        return self._node(self._pointer(134), "", 0)

    def _take(self, start: int, count: int) -> bytes:
        if start < 0 or start + count > len(self.data):
            self._damaged(start, "the file ends before it")
        return bytes(self.data[start : start + count])

    def _tag(self, start: int, wanted: bytes) -> None:
        if self._take(start, 4) != wanted:
            self._damaged(start, f"{wanted.decode()!r} is wanted")

    def _damaged(self, start: int, why: str) -> NoReturn:
        raise MeshError(f"{self.path}: damaged ADF file at byte {start}: {why}")

    def _number(self, start: int, digits: int) -> int:
        text = self._take(start, digits)
        try:
            return int(text, 16)
        except ValueError:
            self._damaged(start, f"{text!r} is no number")

    def _pointer(self, start: int) -> int:
        """Return the place that a pointer leads to."""
        if not self.binary:
            return self._number(start, 8) * _BLOCK + self._number(start + 8, 4)
        block, offset = struct.unpack("<QI", self._take(start, _POINTER))
        return block * _BLOCK + offset

    def _length(self, start: int) -> int:
        """Return a length of an array."""
        return struct.unpack("<Q", self._take(start, 8))[0] if self.binary else self._number(start, 8)

    def _node(self, start: int, parent: str, depth: int) -> Node:
        self._tag(start, b"NoDe")
        self._tag(start + _NODE - 4, b"TaiL")
        name, label = self._word(start + 4), self._word(start + 36)
        where = f"{self.path}: {parent}{name}" if depth else self.path
        if start in self.seen:
            self._damaged(start, "two nodes lead to it")
        self.seen.add(start)
        count = self._number(start + 68, 8)
        below = f"{parent}{name}/" if depth else ""
        children = self._children(self._pointer(start + 84), count, below, depth) if count else ()
        kind = self._word(start + 96)
        if kind == "LK":
            raise MeshError(f"{where}: links are not followed; write a file that holds everything itself")

        def load() -> Array | None:
            return self._array(start, kind, where)

        return Node(name, label, where, no_array if kind in ("MT", "") else load, children)

    def _word(self, start: int) -> str:
        return self._take(start, _NAME).decode("latin-1").strip(" \0")

    def _children(self, table: int, count: int, below: str, depth: int) -> tuple[Node, ...]:
        self._tag(table, b"SNTb")
        first = table + 4 + _POINTER
        places = [self._pointer(first + k * _ENTRY + _NAME) for k in range(count)]
        return tuple(self._node(place, below, depth + 1) for place in places)

    def _array(self, start: int, kind: str, where: str) -> Array | None:
        if kind not in _TYPES:
            raise MeshError(f"{where}: data of the type {kind!r} are not supported")
        dimensions = self._number(start + 128, 2)
        shape = tuple(self._length(start + 130 + 8 * k) for k in range(dimensions))
        chunks, pointer = self._number(start + 226, 4), self._pointer(start + 230)
        if not chunks or not dimensions:
            return None
        places = [pointer]
        if chunks > 1:
            self._tag(pointer, b"DCtb")
            places = [self._pointer(pointer + 16 + 2 * _POINTER * k) for k in range(chunks)]
        dtype = np.dtype(_TYPES[kind]).newbyteorder(self.order)
        size = dtype.itemsize
        for length in shape:
            size *= length
        if size > len(self.data):  # chunks may be named more than once
            self._damaged(start, f"{size} bytes of data are wanted, and the file has {len(self.data)}")
        content = self._chunks(places, size)
        return np.frombuffer(content, dtype=dtype).reshape(shape[::-1])

    def _chunks(self, places: list[int], size: int) -> bytes | memoryview:
        """Return the first bytes of some chunks of data in a row."""
        parts: list[memoryview] = []
        missing = size
        for place in places:
            self._tag(place, b"DaTa")
            begin, end = place + 4 + _POINTER, self._pointer(place + 4)
            end = min(end, begin + missing)
            if end < begin or end > len(self.data):
                self._damaged(place, "the file ends in these data")
            parts.append(self.data[begin:end])
            missing -= end - begin
        if missing:
            self._damaged(places[0], f"{missing} bytes of the data are missing")
        return parts[0] if len(parts) == 1 else b"".join(parts)
