"""Values of the host as a state has them: what JSON can hold, and arrays beside."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CheckpointError

__all__ = ["decoded", "encoded"]

_SHORT = 16
"""Numbers in a row that are written one by one."""


def encoded(value: Any, key: str, tables: dict[str, npt.NDArray[Any]]) -> Any:
    """Return a value of the host as JSON can hold it; arrays, and long lists of numbers, go to ``tables``.

    Raises
    ------
    CheckpointError
        For a value of a type that no file can hold.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "US":
        return {"text": value.tolist()}
    if isinstance(value, np.ndarray):
        tables[key] = value
        return {"table": key, "as": "array"}
    if isinstance(value, np.random.Generator):
        return {"random": value.bit_generator.state}
    if isinstance(value, Mapping):
        return {"items": [[k, encoded(v, f"{key}[{k}]", tables)] for k, v in value.items()]}
    if isinstance(value, list | tuple | deque):
        rows = list(value)
        if len(rows) > _SHORT and (found := _rectangle(rows)) is not None:
            tables[key] = found
            return {"table": key, "as": "rows" if found.ndim > 1 else "list"}
        items = [encoded(v, f"{key}[{k}]", tables) for k, v in enumerate(rows)]
        return {"list": items, "tuple": isinstance(value, tuple)}
    raise CheckpointError(f"{key}: no checkpoint can hold a {type(value).__name__}")


def _rectangle(rows: list[Any]) -> npt.NDArray[Any] | None:
    """Return floats, or tuples of floats of one length, as an array; None if they are something else."""
    if all(isinstance(row, float) for row in rows):
        return np.array(rows)
    width = len(rows[0]) if isinstance(rows[0], tuple) else 0
    same = width and all(isinstance(row, tuple) and len(row) == width for row in rows)
    return np.array(rows) if same and all(isinstance(x, float) for row in rows for x in row) else None


def decoded(value: Any, tables: Mapping[str, npt.NDArray[Any]]) -> Any:
    """Return what `encoded` was given."""
    if not isinstance(value, dict):
        return value
    if "table" in value:
        found = tables[value["table"]]
        makers: dict[str, Callable[[Any], Any]] = {
            "array": np.array, "list": lambda a: a.tolist(), "rows": lambda a: [tuple(row) for row in a.tolist()],
        }  # fmt: skip
        return makers[value["as"]](found)
    if "text" in value:
        return np.array(value["text"])
    if "random" in value:
        kind = getattr(np.random, value["random"]["bit_generator"])()
        kind.state = value["random"]
        return np.random.Generator(kind)
    if "items" in value:
        return {k: decoded(v, tables) for k, v in value["items"]}
    items = [decoded(v, tables) for v in value["list"]]
    return tuple(items) if value["tuple"] else items
