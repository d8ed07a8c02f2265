"""What a flow of a script was made of, in words: so that a run that goes on is known to be of the same flow."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from fluxloom.dsl.context import Context
from fluxloom.mesh.mesh import MeshData

__all__ = ["described"]

_SHORT = 12


def described(value: Any) -> Any:
    """Return a value as JSON has it, such that other numerics are another text: of arrays and functions a digest.

    Where it runs (a context) is left out. Objects with a method ``description`` are what it
    returns, those of other kinds are known by their class alone.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Context):
        return None
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value)
        return array.item() if not array.ndim else f"{array.dtype} {array.shape} {_digest(array.tobytes())}"
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, MeshData):
        parts = described([value.points, value.cells, value.patches, value.polyhedra])
        return f"mesh of {value.n_cells:,} cells {_digest(str(parts).encode())}"
    if isinstance(value, Mapping):
        return {str(key): described(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [described(item) for item in value]
    if callable(own := getattr(type(value), "description", None)):
        return described(own(value))
    if is_dataclass(value) and not isinstance(value, type):
        given = {item.name: described(getattr(value, item.name)) for item in fields(value)}
        return {"type": type(value).__qualname__, **given}
    return _called(value)


def _called(value: Any) -> str:
    """Return a function, or another object, in a line."""
    if isinstance(value, MethodType):
        return f"{described(value.__self__)}.{_called(value.__func__)}"
    if isinstance(value, partial):
        return f"{_called(value.func)} {described([*value.args, value.keywords])}"
    value = getattr(value, "function", value)  # of a kernel, or a function of kernels
    if not isinstance(value, FunctionType):
        return type(value).__qualname__
    cells = [_content(cell) for cell in value.__closure__ or ()]
    with_it = described([*(value.__defaults__ or ()), *cells])
    return f"{value.__name__} {_digest(_code(value.__code__), str(with_it).encode())}"


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _code(code: CodeType) -> bytes:
    """Return what a function does, without where it stands."""
    inner = [_code(item) if isinstance(item, CodeType) else repr(item).encode() for item in code.co_consts]
    return b"\0".join([code.co_code, *inner, *(name.encode() for name in code.co_names)])


def _digest(*parts: bytes) -> str:
    found = hashlib.blake2b()
    for part in parts:
        found.update(part)
    return found.hexdigest()[:_SHORT]
