"""Read the vectorisation reports of gcc and clang."""

from __future__ import annotations

import re

__all__ = ["vectorised_lines"]

_LINE = re.compile(r"^[^\n]*?:(\d+):(\d+): (optimized|missed|remark|note):\s+(.*?)\s*$", re.MULTILINE)
_WIDTH = re.compile(r"using (\d+) byte|vectorization width: (\d+)")


def vectorised_lines(report: str) -> dict[int, str]:
    """Return what the compiler says about each source line that it vectorised.

    Parameters
    ----------
    report
        The text of a vectorisation report (``Library.report``).

    Returns
    -------
    dict
        From 1-based line to the message, as ``"loop vectorized using 64 byte vectors"`` (gcc) or
        ``"vectorized loop (vectorization width: 8, interleaved count: 4)"`` (clang). Where a line has
        several, a loop goes before straight-line code, and the widest vectors before narrower ones.
    """
    found: dict[int, tuple[tuple[bool, int], str]] = {}
    for line, kind, text in _messages(report):
        if "vectorized" not in text or "not vectorized" in text or kind in ("missed", "note"):
            continue
        width = _WIDTH.search(text)
        rank = ("loop" in text, int(width[1] or width[2]) if width else 0)
        if line not in found or rank > found[line][0]:
            found[line] = rank, text
    return {line: text for line, (_, text) in sorted(found.items())}


def _messages(report: str) -> list[tuple[int, str, str]]:
    """Return line, kind and text of each message, without the name of the option that asked for it."""
    return [
        (int(line), kind, re.sub(r"\s*\[-R[\w=-]+\]$", "", text))
        for line, _, kind, text in _LINE.findall(report)
    ]
