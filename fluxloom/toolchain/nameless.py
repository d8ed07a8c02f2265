"""Generated text without the names of its author: sources that differ by names alone are compiled once.

Names of kernels, helpers, parameters and locals reach generated text as identifiers with a mark of the generator: an
underscore at the end of a local, ``v_`` or ``p0_`` before a parameter, ``k_`` before a constant, ``fl_loop_`` before
a function. Each of them is replaced by a number, the same for all places where it stands, and comments are left out.
Two texts that are equal then differ by a one-to-one change of those identifiers, none of which means anything
outside the text, so they have the same code.
"""

from __future__ import annotations

import re

__all__ = ["nameless", "renaming"]

_OURS = r"fl_(?:loop|fused)_\w+|(?:[a-z]|acc|noacc|part|again|for|[efv][gp])\d*_\w+|[A-Za-z]\w*_"
_TOKEN = re.compile(rf"/\*.*?\*/|\b(?:{_OURS})\b", re.DOTALL)
"""Comments, and marked identifiers; names of C, CUDA and OpenCL (``M_PI``, ``as_double``) are none of them."""


def nameless(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text in which names are numbers, and the names in the order of the numbers."""
    numbers: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        word = found[0]
        return "\n" * word.count("\n") if word.startswith("/") else numbers.setdefault(word, f"@{len(numbers)}")

    return _TOKEN.sub(number, text), tuple(numbers)


def renaming(text: str, other: str) -> dict[str, str]:
    """Return the names of one text and what each is called in another that differs by names alone.

    Raises
    ------
    ValueError
        When the texts differ by more.
    """
    (mine, names), (theirs, others) = nameless(text), nameless(other)
    if mine != theirs:
        raise ValueError("the texts differ by more than names")
    return dict(zip(names, others, strict=True))
