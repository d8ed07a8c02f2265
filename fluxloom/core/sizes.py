"""What a file can hold: its counts are compared with its bytes before memory is reserved for them."""

from __future__ import annotations

import io
import zlib
from typing import Any

__all__ = ["check_stored", "expanded"]

_MOST, _ROOM = 200, 2**26
"""A compressed file makes at most so many of its bytes, or this number of bytes if that is more. Text of meshes makes
three to ten of one; 1032 is what deflate can make of zeros."""

_FILTERED, _DEEP = 1100, 8
_BLOCK = 2**22


def expanded(data: bytes) -> bytes:
    """Return what a gzip file holds.

    Raises
    ------
    ValueError
        When that is more than 200 times as long as the file and more than 64 MiB, or the file is damaged.
    """
    import gzip

    most, parts = max(_MOST * len(data), _ROOM), []
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while part := file.read(_BLOCK):
                parts.append(part)
                most -= len(part)
                if most < 0:
                    raise ValueError(f"it expands to more than {_MOST} times its length; if it is sound, gunzip it")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"the compressed file is damaged or truncated ({error}); copy it again") from None
    return b"".join(parts)


def check_stored(item: Any, depth: int = 0) -> None:
    """Raise `ValueError` where the file of an HDF5 data set, or of those in a group, cannot hold what its shape says.

    A data set may be compressed, to a 1100th of its size at most. One whose values lie in another file is refused.
    """
    if hasattr(item, "values"):
        for below in item.values() if depth < _DEEP else ():
            check_stored(below, depth + 1)
    elif hasattr(item, "nbytes"):
        stored, there = item.id.get_storage_size(), item.file.id.get_filesize()
        if item.is_virtual or item.external:
            raise ValueError(f"the values of {item.name} lie in another file; write one file that has all")
        if stored > there or item.nbytes > max(_FILTERED * stored, _ROOM):
            raise ValueError(f"{item.name} says that it has {item.nbytes} bytes, and the file {stored} of them")
