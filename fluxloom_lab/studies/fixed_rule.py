"""How the rows of a ragged loop were grouped on a device of 2011, by a rule with two numbers.

Source: I. Z. Reguly, "Algorithms for unstructured grids on parallel heterogeneous hardware", PhD thesis,
Pázmány Péter Catholic University, Budapest, 2014, section 4.5.
"""

from __future__ import annotations

from math import sqrt

from fluxloom.perf.ragged import LANES, Grouping

__all__ = ["fixed_rule"]

_BLOCK, _GROUPS, _MOST_REPEAT = 128, 1500, 1024


def fixed_rule(rows: int, entries: int, *, groups: int = _GROUPS) -> Grouping:
    """Return a grouping that is good before anything was measured, from two numbers alone.

    ::

        block  = 128
        lanes  = the least power of two above sqrt(entries / rows), at most 32
        repeat = the largest power of two that leaves at least `groups` groups

    Parameters
    ----------
    rows, entries
        Rows of the ragged map, and their entries in all.
    groups
        Groups that keep the device busy. The source's 1500 are 13 times what its device (14 multiprocessors)
        held at once; a device that knows how many groups it holds passes about 13 times that number.

    Returns
    -------
    Grouping
        Unpacks as ``block, lanes, repeat``.

    Notes
    -----
    The source leaves open which ``repeat`` it takes; a power of two halves evenly in the tuner's first step.
    """
    if rows <= 0:
        return Grouping(_BLOCK, 1, 1)
    root = sqrt(entries / rows)
    lanes = next((n for n in LANES if n > root), LANES[-1])
    most = (rows * lanes - 1) // (max(1, groups - 1) * _BLOCK)
    return Grouping(_BLOCK, lanes, 1 << (int(min(most, _MOST_REPEAT)).bit_length() - 1) if most else 1)
