"""Packing what other ranks need into messages, and unpacking what they sent.

A message is made of records, one an element: the components of every dat, the widest types first; or of single numbers
of a dat, each from a place of its own. Values travel as the bits they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from fluxloom.codegen.language.dialect import DIALECTS, Dialect
from fluxloom.codegen.language.frame import argument_block, beginning, head, opening
from fluxloom.codegen.language.lane import address
from fluxloom.codegen.language.spec import ArgSpec, Entry, LaunchSpec, Slot
from fluxloom.codegen.unit import Unit
from fluxloom.core.access import Access
from fluxloom.core.dtypes import Layout, Scalar, SoA

__all__ = ["WORD", "Field", "exchange_unit", "numbers_unit", "record_bytes"]

WORD = 8
"""Records begin at multiples of this many bytes."""

_BLOCK = 128
_BITS = {1: "uint8_t", 2: "uint16_t", 4: "int32_t", 8: "int64_t"}


@dataclass(frozen=True)
class Field:
    """A dat in a record: its type, components an element, and layout."""

    scalar: Scalar
    dim: int
    layout: Layout


def record_bytes(fields: Sequence[Field]) -> int:
    """Return the bytes of a record."""
    return -(-sum(f.scalar.size * f.dim for f in fields) // WORD) * WORD


def exchange_unit(fields: Sequence[Field], dialect: str) -> Unit:
    """Generate the functions ``fl_pack`` and ``fl_unpack`` of records.

    Both go through ``n`` elements: element ``k`` is at the place ``list[k]`` of the dats ``d0``, ``d1`` ... and at
    the word ``where[k]`` of the message ``msg``.

    Parameters
    ----------
    fields
        The dats, widest types first.
    """
    language, dats = DIALECTS[dialect], frozenset(f"d{k}" for k in range(len(fields)))
    return _both(language, _slots(fields), dats, partial(_copies, fields, language))


def numbers_unit(scalar: Scalar, wide: bool, dialect: str) -> Unit:
    """Generate ``fl_pack`` and ``fl_unpack`` of single numbers of one dat.

    Number ``k`` of ``n`` is at the place ``list[k]`` of the storage of ``d0``, counted in numbers, and in the message
    ``msg`` behind the ``at`` words of the ranks before.

    Parameters
    ----------
    wide
        Whether the places have 64 bits.
    """
    language, kind = DIALECTS[dialect], _BITS[scalar.size]
    place = "int64_t" if wide else "int32_t"
    slots = (Slot("int64_t", "n", "size", "n"), Slot(f"{place} *", "list", "plan", "list"),
             Slot("int64_t", "at", "size", "at"), Slot("int64_t *", "msg", "message", "msg"),
             Slot(f"{kind} *", "d0", "dat", 0))  # fmt: skip
    return _both(language, slots, frozenset({"d0"}), partial(_moves, kind, language))


def _both(
    language: Dialect, slots: tuple[Slot, ...], dats: frozenset[str], body: Callable[[bool, str], list[str]]
) -> Unit:
    """Return the function that packs, which writes the message, and the one that unpacks, which writes the dats."""
    found = [
        _loop(symbol, slots, frozenset({"msg"}) if pack else dats, language, partial(body, pack))
        for symbol, pack in (("fl_pack", True), ("fl_unpack", False))
    ]
    return Unit("\n".join([head(language), *(text for text, _ in found)]), tuple(entry for _, entry in found))


def _moves(kind: str, language: Dialect, pack: bool, prefix: str) -> list[str]:
    """Return the statements that copy one number."""
    message, place = "r[k]", f"{prefix}d0[{prefix}list[k]]"
    return [
        _message(kind, language, pack, "r", f"{prefix}msg + {prefix}at"),
        f"        {message} = {place};" if pack else f"        {place} = {message};",
    ]


def _message(kind: str, language: Dialect, pack: bool, name: str, place: str) -> str:
    """Return the line that names a place in the message as one of numbers of a type."""
    space, const = "__global " if language.name == "opencl" else "", "" if pack else "const "
    pointed = language.words.cast.format(const=const, type=kind) if language.words else f"({const}{kind} *)"
    return f"        {space}{const}{kind} *const {name} = {pointed}({place});"


def _slots(fields: Sequence[Field]) -> tuple[Slot, ...]:
    slots = [Slot("int64_t", "n", "size", "n"), Slot("int32_t *", "list", "plan", "list")]
    slots += [Slot("int32_t *", "where", "plan", "where"), Slot("int64_t *", "msg", "message", "msg")]
    for k, field in enumerate(fields):
        slots.append(Slot(f"{_BITS[field.scalar.size]} *", f"d{k}", "dat", k))
        if isinstance(field.layout, SoA):
            slots.append(Slot("int64_t", f"s{k}", "stride", k))
    return tuple(slots)


def _loop(
    symbol: str, slots: tuple[Slot, ...], written: frozenset[str], language: Dialect, body: Callable[[str], list[str]]
) -> tuple[str, Entry]:
    """Return a function that runs statements for each ``k`` below ``n``; they are told what stands before names."""
    if language.words is None:
        lines = [*argument_block(symbol, slots), *beginning(symbol)]
        lines += ["    for (int64_t k = 0; k < A->n; k++) {", *body("A->"), "    }", "}", ""]
        return "\n".join(lines), Entry(symbol, slots)
    words = language.words
    lines = opening(words, symbol, slots, written, _BLOCK)
    lines += [f"    const int k = {words.item.format(block=_BLOCK)};", "    if (k < n) {"]
    lines += [*body(""), "    }", "}", ""]
    return "\n".join(lines), Entry(symbol, slots, (LaunchSpec(symbol, _BLOCK, "n"),))


def _copies(fields: Sequence[Field], language: Dialect, pack: bool, prefix: str) -> list[str]:
    """Return the statements that copy one record."""
    lines = [f"        const int64_t e = {prefix}list[k];"]
    offset = 0
    for number, field in enumerate(fields):
        kind = _BITS[field.scalar.size]
        arg = ArgSpec("", Access.READ, "direct", number, field.scalar, (field.dim,), field.layout)
        lines.append(_message(kind, language, pack, f"r{number}", f"{prefix}msg + {prefix}where[k]"))
        for c in range(field.dim):
            message = f"r{number}[{offset // field.scalar.size + c}]"
            place = f"{prefix}d{number}[{address(arg, 'e', c, prefix)}]"
            lines.append(f"        {message} = {place};" if pack else f"        {place} = {message};")
        offset += field.scalar.size * field.dim
    return lines
