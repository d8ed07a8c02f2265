"""Text of files of any program: a byte-order mark is none of it, and numbers may have the exponents of Fortran."""

from __future__ import annotations

import codecs
import re

__all__ = ["real", "whole", "without_mark"]

_WIDE = ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"),
         (codecs.BOM_UTF16_BE, "utf-16"))  # fmt: skip
_FORTRAN = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[dDqQ]([+-]?\d+)|([+-]\d+))", re.ASCII)

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


def without_mark(data: bytes) -> bytes:
    """Return the bytes of a text in UTF-8 without the byte-order mark, which some editors write; others as they are."""
    if data.startswith(codecs.BOM_UTF8):
        return data[len(codecs.BOM_UTF8) :]
    for mark, name in _WIDE:
        if data.startswith(mark) and data != mark:
            try:
                return data.decode(name).encode()
            except UnicodeDecodeError:  # bytes that begin so and are no text
                return data
    return data


def real(word: str) -> float:
    """Return the number that a word is: as Python writes it, or as Fortran does (``1.5D-3``, ``1.5-103``).

    Raises
    ------
    ValueError
        When it is none.
    """
    if found := _FORTRAN.fullmatch(word):
        word = f"{found[1]}e{found[2] or found[3]}"
    elif "_" in word or not word.isascii():
        raise ValueError(f"{word!r} is no number")
    return float(word)


def whole(word: str) -> int:
    """Return the whole number that a word is, of 18 digits at most.

    Raises
    ------
    ValueError
        When it is none.
    """
    if not _WHOLE.fullmatch(word):
        raise ValueError(f"{word!r} is no whole number")
    return int(word)
