"""Changes of HDF5 files by what is in them: values, shapes, types, names, and data that are not there."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

from fluxloom.core.packages import require

__all__ = ["is_hdf5", "rearranged"]

_WHOLE = (-1, 0, 1, 2, 3, 7, 2**15, 2**31 - 1, 2**31, 2**40, 2**62, -(2**62))
_REALS = (np.nan, np.inf, -np.inf, -0.0, 0.5, 1e300, -1e300, 5e-324)


def is_hdf5(data: bytes) -> bool:
    """Whether bytes begin as an HDF5 file does."""
    return data[:8] == b"\x89HDF\r\n\x1a\n"


def rearranged(pick: random.Random, path: Path) -> str:
    """Change one thing in an HDF5 file and return what: a data set, an attribute or a group."""
    h5py = require("h5py", "mesh", "the attack on HDF5 files")
    with h5py.File(path, "r+") as file:
        items: list[tuple[Any, str]] = []

        def visit(name: str, item: Any) -> None:
            items.append((file, name))
            items.extend((item.attrs, key) for key in item.attrs)

        file.visititems(visit)
        holder, key = pick.choice(items)
        item = holder[key]
        if isinstance(item, h5py.Group):
            return _group(pick, file, key)
        values = np.asarray(item)
        kind = pick.choice(["value"] * 6 + ["shape", "shape", "type", "drop", "text", "empty"])
        new = _changed(pick, values, kind)
        if kind == "value" and hasattr(item, "write_direct") and values.dtype.kind not in "UO":
            item[...] = new
        else:
            del holder[key]
            if kind != "drop":
                holder[key] = new
        return f"{kind} of {key}"


def _group(pick: random.Random, file: Any, key: str) -> str:
    """Take a group away, or give it another name."""
    if pick.random() < 0.5:
        del file[key]
        return f"drop of {key}"
    file.move(key, key + "x")
    return f"name of {key}"


def _changed(pick: random.Random, values: np.ndarray, kind: str) -> Any:
    """Return other values for a data set or an attribute."""
    match kind:
        case "shape" if values.dtype.kind not in "UO":
            flat = values.reshape(-1)
            forms = [flat[:-1], np.concatenate([flat, flat[:1]]), values[None], flat.reshape(-1, 1), flat[:1]]
            return pick.choice(forms) if flat.size else np.zeros(3)
        case "type":
            if values.dtype.kind not in "iuf":
                return np.zeros(values.shape)
            return values.astype(pick.choice(("f4", "f8", "i1", "i2", "u8", "c16", ">i4")), casting="unsafe")
        case "text":
            return np.bytes_(pick.choice((b"", b"text", b"1", b"\xff\xfe")))
        case "empty":
            return np.zeros((0,) * max(1, values.ndim), dtype=values.dtype if values.dtype.kind in "iuf" else "f8")
    new = np.asarray(values, dtype="S") if values.dtype.kind in "UO" else values.copy()
    if new.dtype.kind in "iuf" and new.size:
        flat = new.reshape(-1)
        place = pick.randrange(flat.size)
        if new.dtype.kind == "f":
            flat[place] = np.array(pick.choice(_REALS)).astype(new.dtype)
        else:
            old = int(flat[place])
            whole = pick.choice((*_WHOLE, old + 1, old - 1, old + 1, old - 1))
            flat[place] = np.array([whole % (1 << 64)], dtype=np.uint64).astype(new.dtype)[0]
    return new
