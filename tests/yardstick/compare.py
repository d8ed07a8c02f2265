"""Compare the record of a run with the one that is stored."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.yardstick.digests import NO_FIT, difference, relative

KINDS = ("asked", "status", "files", "summary", "fields", "tables")
WORDS = ("asked", "status", "files")
"""Kinds of which there is only equal and not equal."""

MADE = ("(points)", ".stl", ".msh")
"""Ends of the names of what other programs make, each version its own."""

SHOWN = 3
"""Changes that a line of the table names."""


@dataclass(frozen=True)
class Change:
    """One thing that is not as it was.

    Attributes
    ----------
    kind
        Of `KINDS`.
    name
        The field, column, row or key.
    change
        The difference; infinite where there is none: something is new, gone or a word.
    scale
        The largest value.
    text
        What happened, for words and for what is new or gone.
    """

    kind: str
    name: str
    change: float = math.inf
    scale: float = 1.0
    text: str = ""

    @property
    def amount(self) -> float:
        """The difference relative to the largest value."""
        return relative(self.change, self.scale)

    def __str__(self) -> str:
        if self.text:
            return f"{self.name}: {self.text}"
        return f"{self.name} by {self.amount:.1e}" if math.isfinite(self.amount) else f"{self.name} does not fit"


def changes(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[Change]:
    """Return everything in which two records differ, in the order of `KINDS`."""
    found: list[Change] = []
    for kind in KINDS:
        ours, theirs = new.get(kind, {}), old.get(kind, {})
        if kind == "files":
            ours, theirs = dict.fromkeys(ours, ""), dict.fromkeys(theirs, "")
        found += [Change(kind, name, text="is gone") for name in theirs if name not in ours]
        found += [Change(kind, name, text="is new") for name in ours if name not in theirs]
        for name in (name for name in theirs if name in ours):
            found += _changed(kind, name, ours[name], theirs[name])
    return found


def _changed(kind: str, name: str, new: Any, old: Any) -> Iterator[Change]:
    """Yield the changes of one entry, which both records have."""
    if kind in WORDS:
        if new != old:
            yield Change(kind, name, text=f"{_short(old)} -> {_short(new)}")
    elif kind == "summary":
        if new != old:
            yield Change(kind, name, *_numbers(new, old))
    elif kind == "fields":
        if new["sha"] != old["sha"] or new["type"] != old["type"]:
            yield Change(kind, name, *difference(new, old))
    else:
        yield from _table(name, new, old)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _numbers(new: list[float], old: list[float]) -> tuple[float, float]:
    """Return the difference and the size of that number of a line which differs most."""
    if len(new) != len(old):
        return NO_FIT
    pairs = [(abs(a - b), max(abs(a), abs(b))) for a, b in zip(new, old, strict=True)]
    return max(pairs, key=lambda pair: relative(*pair), default=(0.0, 1.0))


def _table(name: str, new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Change]:
    """Yield the changes of the columns of a table."""
    if new["rows"] != old["rows"]:
        yield Change("tables", name, text=f"{old['rows']} rows -> {new['rows']} rows")
        return
    ours, theirs = new["columns"], old["columns"]
    yield from (Change("tables", f"{name}:{column}", text="is gone") for column in theirs if column not in ours)
    yield from (Change("tables", f"{name}:{column}", text="is new") for column in ours if column not in theirs)
    for column in (column for column in theirs if column in ours):
        (sha, *a), (was, *b) = ours[column], theirs[column]
        if sha != was:
            yield Change("tables", f"{name}:{column}", *_column(a, b, old["rows"]))


def _column(new: list[float | None], old: list[float | None], rows: int) -> tuple[float, float]:
    """Return by how much a column differs, and its largest value."""
    if len(new) != len(old) or not old or any((a is None) != (b is None) for a, b in zip(new, old, strict=True)):
        return NO_FIT
    last, least, most, sketch, *lost = ((a or 0.0) - (b or 0.0) for a, b in zip(new, old, strict=True))
    if any(lost):
        return NO_FIT
    scale = max(abs(old[1] or 0.0), abs(old[2] or 0.0))
    return max(abs(last), abs(least), abs(most), abs(sketch) / math.sqrt(rows)), scale


# ------------------------------------------------------------------------------------------- the verdict


@dataclass(frozen=True)
class Verdict:
    """What the comparison of a case says.

    Attributes
    ----------
    case
        Its name.
    word
        ``"same bits"``, ``"same to 1e-09"`` with the tolerance that was used, ``"DIFFERS"``, ``"renamed"`` where no
        number differs but a status, a name of a row, column, field or file does, ``"NEW"``, ``"FAILED"``, or
        ``"left out"``.
    text
        What differs, the worst first.
    good
        Whether nothing has to be explained.
    """

    case: str
    word: str
    text: str = ""
    good: bool = True


def judge(
    name: str, new: Mapping[str, Any], old: Mapping[str, Any] | None, tolerance: float, kinds: Sequence[str] = KINDS,
    zero: float = 0.0,
) -> Verdict:  # fmt: skip
    """Return the verdict on a record: changes up to the tolerance are none; with 0.0 only equal bits are equal.

    With a tolerance changes up to ``zero``, in the unit of the value, are none either: a force across a plane of
    symmetry is zero but for rounding, and all of it may change.
    """
    if old is None:
        return Verdict(name, "NEW", "there is no record of it: --update writes one", False)
    found = [change for change in changes(new, old) if change.kind in kinds]
    found.sort(key=lambda change: -change.amount)
    made = [change for change in found if change.name.endswith(MADE) and change.amount == math.inf]
    if tolerance and made and new["machine"]["packages"] != old["machine"]["packages"]:
        return Verdict(name, "left out", f"{made[0].name} is another one: other versions of what makes meshes")
    worst = [one for one in found if not tolerance or (one.amount > tolerance and one.change > zero)]
    if worst:
        more = f"; and {len(worst) - SHOWN} more" if len(worst) > SHOWN else ""
        word = "renamed" if all(change.text for change in worst) else "DIFFERS"
        return Verdict(name, word, "; ".join(map(str, worst[:SHOWN])) + more, False)
    if found:
        return Verdict(name, f"same to {tolerance:.0e}", f"{found[0]}")
    return Verdict(name, "same bits")


def lines(verdicts: list[Verdict]) -> list[str]:
    """Return the table of verdicts."""
    wide, word = (max((len(getattr(v, name)) for v in verdicts), default=0) for name in ("case", "word"))
    return [f"{v.case:<{wide}}  {v.word:<{word}}  {v.text}".rstrip() for v in verdicts]
