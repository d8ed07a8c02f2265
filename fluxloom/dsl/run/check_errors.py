"""What the checking mode says: the loop, the line, the element and the values."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluxloom.core.errors import LoopCheckError
from fluxloom.dsl.declare.sets import Grid, Set
from fluxloom.dsl.plan.bind import Bound
from fluxloom.kernel.check.checks import Checked
from fluxloom.kernel.ir import Location

__all__ = ["check_error", "element_error"]

_WIDE = 200
"""Characters of the values of one argument, at most."""


def check_error(
    bound: Bound,
    checked: Checked,
    element: int,
    site: int,
    shown: tuple[Any, ...] | None,
    values: Mapping[str, Any],
    note: str = "",
) -> LoopCheckError:
    """Return the error of a site.

    Parameters
    ----------
    bound
        The loop.
    checked
        Its checks.
    element, site
        What the checks found.
    shown
        The values of the site; None if they are not known.
    values
        What the element read, by parameter.
    note
        More about when it was.
    """
    found = checked.sites[site - 1]
    what = found.what.format(*(map(_text, shown) if shown is not None else ["(value not known)"] * len(found.values)))
    read = [f"{name} = {_text(value)}" for name, value in values.items() if name not in (checked.number, checked.first)]
    return element_error(bound, element, what, found.location, read, note)


def element_error(
    bound: Bound, element: int, what: str, location: Location | None = None, read: list[str] | None = None,
    note: str = "",
) -> LoopCheckError:  # fmt: skip
    """Return the error of an element of a loop."""
    filename, line = bound.kernel.filename, location.line if location is not None else bound.kernel.line
    head = f"loop {bound.name!r}, kernel {bound.kernel.name!r}, element {_element(bound.over, element)}"
    lines = [f"{head}{f', {note}' if note else ''}: {what}"]
    if location is not None and location.inside is not None:
        lines.append(f"    {location.inside[0]}:{location.inside[1]}: {_line(*location.inside)}, called at")
    lines.append(f"    {filename}:{line}: {_line(filename, line)}")
    lines += [f"    the element read {text}" for text in read or ()]
    return LoopCheckError(
        "\n".join(lines), loop=bound.name, kernel=bound.kernel.name, what=what, filename=filename, line=line,
        element=element,
    )  # fmt: skip


def _line(filename: str, line: int) -> str:
    return linecache.getline(filename, line).strip()


def _element(over: Set, element: int) -> str:
    parent = over.parent
    if isinstance(parent, Grid):
        place = ", ".join(str(int(k)) for k in np.unravel_index(element, parent.shape))
        text = f"{element} ({place}) of {parent.name!r}"
    else:
        text = f"{element} of {parent.name!r}"
    if parent.context.distributed:
        whole = f", {int(parent.part.numbers[element])} of all" if parent.part is not None else ""
        text += f" (rank {parent.context.comm.rank}{whole})"
    return text


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        text = np.array2string(value, threshold=24, separator=", ").replace("\n", "")
        return text if len(text) <= _WIDE else text[:_WIDE] + " ..."
    return repr(value.item()) if isinstance(value, np.generic) else repr(value)
