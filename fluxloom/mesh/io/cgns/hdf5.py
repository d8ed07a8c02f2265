"""CGNS in HDF5 files: a group for each node, with its name, label and type as attributes and the data set ``" data"``.

Source: CGNS "SIDS-to-HDF5 File Mapping Manual".
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fluxloom.core.errors import MeshError
from fluxloom.core.packages import guarded, require
from fluxloom.core.sizes import check_stored
from fluxloom.mesh.io.cgns.tree import Array, Node, no_array

__all__ = ["is_hdf5", "open_hdf5"]

_DATA = " data"
_MOST_DEEP = 64


def is_hdf5(head: bytes) -> bool:
    """Whether a file that begins so is an HDF5 file."""
    return head[:8] == b"\x89HDF\r\n\x1a\n"


@contextlib.contextmanager
def open_hdf5(path: Path, content: bytes | None = None) -> Iterator[Node]:
    """Open the root of a CGNS/HDF5 file; its arrays can be read until it is closed.

    Parameters
    ----------
    path
        The file.
    content
        Its bytes, when they are not those on the disk (a compressed file).

    Raises
    ------
    MeshError
        When it is not such a file, or is damaged, or leads to another file.
    DeviceUnavailable
        When h5py is not installed.
    """
    h5py = require("h5py", "mesh", "reading CGNS files of the HDF5 kind")
    with (
        guarded(f"{path}: not an HDF5 file, or damaged", "write it anew", MeshError),
        h5py.File(path if content is None else io.BytesIO(content), "r") as file,
    ):
        yield _node(str(path), file, "", 0, h5py)


def _node(path: str, group: Any, below: str, depth: int, h5py: Any) -> Node:
    """Return the node of a group."""
    name = group.name.rsplit("/", 1)[-1]
    where = f"{path}: {below}{name}" if depth else path
    if depth > _MOST_DEEP:
        raise MeshError(f"{where}: a node lies below itself")
    if _word(group, "type") == "LK" or " link" in group:
        raise MeshError(f"{where}: links are not followed; write a file that holds everything itself")
    inside = f"{below}{name}/" if depth else ""
    children = [item for item in group.values() if isinstance(item, h5py.Group) and "label" in item.attrs]
    data = group.get(_DATA)
    return Node(
        name,
        _word(group, "label"),
        where,
        (lambda: _array(data)) if isinstance(data, h5py.Dataset) else no_array,
        tuple(_node(path, item, inside, depth + 1, h5py) for item in children),
    )


def _word(group: Any, key: str) -> str:
    value = group.attrs.get(key, b"")
    text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
    return text.strip(" \0")


def _array(data: Any) -> Array:
    """Return a data set; characters come as small integers."""
    check_stored(data)
    found = np.asarray(data[()])
    return found.view("S1") if found.dtype in (np.dtype("i1"), np.dtype("u1")) else found
