"""Constants in generated code: numbers, and tables of them that kernels index at run time."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable

import numpy as np

from fluxloom.codegen.dialect import Dialect
from fluxloom.codegen.spec import LoopSpec
from fluxloom.core.dtypes import Scalar
from fluxloom.kernel.ir import Kind, Table

__all__ = ["TABLE_BYTES", "literal", "table_name", "table_source"]

TABLE_BYTES = 48 << 10
"""Bytes of the tables of a unit in the memory for constants, of which devices have 64 KiB; the rest lies outside it."""

_DIGITS = 16
_PER_LINE = 8


def literal(value: float | int | bool, kind: Kind, compute: Scalar) -> str:
    """Return the C literal of a constant; float32 literals are rounded here, exactly once."""
    if kind is Kind.BOOL:
        return "1" if value else "0"
    if kind is Kind.INT:
        if value == -(2**63):  # no literal: 2**63 is none of a signed integer
            return "(-INT64_C(9223372036854775807) - 1)"
        return str(int(value)) if -(2**31) < value < 2**31 else f"INT64_C({int(value)})"
    real = float(value)
    if math.isnan(real):
        return "NAN"
    if math.isinf(real):
        return "INFINITY" if real > 0 else "(-INFINITY)"
    if compute.size == 4:
        with np.errstate(over="ignore"):
            rounded = float(np.float32(real))
        text = repr(rounded) + "f" if math.isfinite(rounded) else "INFINITY"
    else:
        text = repr(real)
    return f"({text})" if real < 0 or text.startswith("-") else text


def table_name(table: Table, compute: Scalar) -> str:
    """Return the name of a table in generated code, which tells its content: equal tables are one."""
    content = f"{table.kind} {table.shape} {table.values!r} {_ctype(table.kind, compute)}"
    return f"fl_table_{hashlib.sha256(content.encode()).hexdigest()[:_DIGITS]}"


def table_source(specs: Iterable[LoopSpec], dialect: Dialect) -> str:
    """Return the declarations of the tables of some loops, each once; empty when they have none."""
    found = {table_name(table, spec.compute): (table, spec.compute) for spec in specs for table in spec.kernel.tables}
    lines, used = [], 0
    for name, (table, compute) in found.items():
        kind = _ctype(table.kind, compute)
        size = len(table.values) * (8 if kind == "int64_t" else 4 if kind == "int" else compute.size)
        fits = used + size <= TABLE_BYTES
        used += size if fits else 0
        words = dialect.words
        qualifier = "static const" if words is None else words.table if fits else words.large_table
        dims = "".join(f"[{n}]" for n in table.shape)
        lines.append(f"{qualifier} {kind} {name}{dims} = {_rows(table, compute)}; /* {table.name} */")
    return "\n".join([*lines, ""]) if lines else ""


def _ctype(kind: Kind, compute: Scalar) -> str:
    return {Kind.REAL: compute.c, Kind.INT: "int64_t", Kind.BOOL: "int"}[kind]


def _rows(table: Table, compute: Scalar) -> str:
    """Return the values in nested braces, a few a line."""
    texts = [literal(value, table.kind, compute) for value in table.values]
    for level, extent in enumerate(reversed(table.shape)):
        groups = [texts[first : first + extent] for first in range(0, len(texts), extent)]
        texts = ["{" + (_broken(group) if level == 0 else ",\n".join(group)) + "}" for group in groups]
    return texts[0]


def _broken(texts: list[str]) -> str:
    lines = [", ".join(texts[first : first + _PER_LINE]) for first in range(0, len(texts), _PER_LINE)]
    return ",\n".join(lines)
