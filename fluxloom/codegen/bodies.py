"""Pieces of bodies of primitives: what is done for every element of a box, and a sum by a group of items."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["group_sum", "over"]


def over(box: Mapping[str, str], statements: str, *, items: bool, shared: str = "") -> str:
    """Return statements that are done for every element of a box: by a work item each, or in loops of plain C.

    Parameters
    ----------
    box
        Numbers of elements along each axis by the names of the indices, the slowest first.
    items
        Whether there are work items.
    shared
        In C: the condition under which ``threads``, a parameter, share the loops but the innermost; empty: they do not.
    """
    names, counts = list(box), list(box.values())
    if items:
        found, rest = [], "FL_ITEM"
        for name, count in zip(reversed(names[1:]), reversed(counts[1:]), strict=True):
            found.append(f"{name} = {rest} % ({count})")
            rest += f" / ({count})"
        found.append(f"{names[0]} = {rest}")
        inside = " * ".join(f"({count})" for count in counts)
        head = f"    if (FL_ITEM < {inside}) {{\n        const int64_t {', '.join(found)};\n"
        return f"{head}        {statements}\n    }}\n"
    collapse = f" collapse({len(names) - 1})" if len(names) > 2 else ""
    pragma = f"#pragma omp parallel for schedule(static){collapse} num_threads(fl_threads(threads))"
    head = f"{pragma} if (threads != 1 && {shared})\n" if shared else ""
    for name, count in box.items():
        head += f"    for (int64_t {name} = 0; {name} < {count}; {name}++)\n"
    return f"{head}    {{\n        {statements}\n    }}\n"


def group_sum(term: str, count: str, block: int | str, real: str) -> str:
    """Return what leaves in ``part[0]`` the sum of a term over ``i = 0 ... count - 1``, found by a group of items.

    Parameters
    ----------
    block
        Items of the group, a power of two; 1 in plain C, which adds in order.
    real
        C type of the sum.
    """
    return f"""
    FL_SHARED {real} part[{block}];
    {real} sum = 0;
    for (int64_t i = FL_MEMBER; i < {count}; i += {block}) sum += {term};
    part[FL_MEMBER] = sum;
    FL_BARRIER();
    for (int span = {block} / 2; span > 0; span /= 2) {{
        if (FL_MEMBER < span) part[FL_MEMBER] += part[FL_MEMBER + span];
        FL_BARRIER();
    }}
"""
