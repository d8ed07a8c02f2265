"""What a lowered kernel is, whatever its names: equal digests mean code that differs by names alone.

The digest of a kernel is the key of its tunings, so names must not change it: those of the kernel and of its file,
of parameters and constants, locals, helpers and tables. Each name is replaced by its kind and the place at which it
comes first. All that computes is kept: shapes, kinds, accesses, operations, numbers and their order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import Enum

from fluxloom.kernel import ir
from fluxloom.kernel.analysis import field_names
from fluxloom.kernel.ir import Kind

__all__ = ["kernel_digest", "named_digest"]

_SPACES: dict[type, str] = {
    **dict.fromkeys((ir.Parameter, ir.Read, ir.Length, ir.Store, ir.Update), "p"),
    **dict.fromkeys((ir.ConstantParameter, ir.ReadConstant), "k"),
    **dict.fromkeys((ir.Local, ir.Assign, ir.For), "s"),
    **dict.fromkeys((ir.LocalArray, ir.LocalElement, ir.StoreLocal), "a"),
    **dict.fromkeys((ir.Table, ir.TableElement), "t"),
}
"""What a name stands for: equal names of different kinds are different things."""

_NAMES = ("name", "parameter")
"""Fields of nodes that hold names."""


def kernel_digest(
    parameters: tuple[ir.Parameter, ...],
    shapes: tuple[ir.ArgShape, ...],
    constants: tuple[ir.ConstantParameter, ...],
    scalars: tuple[tuple[str, Kind], ...],
    arrays: tuple[ir.LocalArray, ...],
    body: tuple[ir.Statement, ...],
    tables: tuple[ir.Table, ...],
) -> str:
    """Return the SHA-256 of all that a kernel computes; the arguments are the fields of `LoweredKernel`."""
    numbers: dict[tuple[str, str], int] = {}
    seen = [_canonical(part, numbers) for part in (parameters, shapes, constants, body)]
    # what is declared is listed in the order in which the body meets it, not in that of the names
    kinds = [(_number("s", name, numbers), kind.name) for name, kind in scalars]
    declared = [_canonical(item, numbers) for item in (*arrays, *tables)]
    return hashlib.sha256("\n".join([*seen, repr(sorted(kinds)), *sorted(declared)]).encode()).hexdigest()


def named_digest(kernel: ir.LoweredKernel) -> str:
    """Return the digest that earlier versions had, of which names were a part: the key of tunings recorded then."""
    content = (kernel.name, kernel.parameters, kernel.shapes, kernel.constants, kernel.scalars, kernel.arrays,
               kernel.body, kernel.tables)  # fmt: skip
    return hashlib.sha256(_canonical(content, None).encode()).hexdigest()


def _number(space: str, name: str, numbers: dict[tuple[str, str], int]) -> int:
    return numbers.setdefault((space, name), len(numbers))


def _canonical(value: object, numbers: dict[tuple[str, str], int] | None) -> str:
    """Return a text of content alone: no locations, no addresses; with ``numbers`` no names either."""
    if isinstance(value, tuple):
        return "(" + ",".join([_canonical(item, numbers) for item in value]) + ")"
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, (str, bool, int, float)) or value is None:
        return repr(value)
    kind = type(value)
    parts = list(_parts(value, kind, numbers))
    return f"{kind.__name__}({','.join(parts)})" if parts else str(value)


def _parts(value: object, kind: type, numbers: dict[tuple[str, str], int] | None) -> Iterable[str]:
    for field in field_names(kind):
        item = getattr(value, field)
        if field == "location":
            continue
        if numbers is not None and field in _NAMES:
            yield str(_number(_SPACES[kind], item, numbers))
        else:
            yield _canonical(item, numbers)
