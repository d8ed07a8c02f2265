"""Tunings that were recorded when names were a part of the keys of kernels, taken over for their loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fluxloom.dsl.plan.tuning import TuningFile, graded_key, tuning_key
from fluxloom.kernel.lowering import named_digest

if TYPE_CHECKING:
    from fluxloom.dsl.run.loop import Loop

__all__ = ["carry_tunings"]

_GRADES = (None, "plan", "global")
"""Grades of determinism."""


def carry_tunings(loops: Sequence[Loop], source: TuningFile, target: TuningFile) -> list[Loop]:
    """Copy the records that an old file has of some loops, under the keys that they have now.

    Parameters
    ----------
    loops
        Loops on their own data: a record is of a kernel, a device, a number of threads and a size class.
    source, target
        The old file, which is left as it is, and the one that takes the records.

    Returns
    -------
    list of Loop
        Those which the old file has no record of: their kernels have changed since, or were never measured.
    """
    old, missing = {row.key: row for row in source.show()}, []
    for loop in loops:
        named, device = named_digest(loop.bound.lowered), loop.context.device.describe()
        key = tuning_key(named, device, loop.over.size, loop.context.threads)
        found = [(grade, old[graded_key(key, grade)]) for grade in _GRADES if graded_key(key, grade) in old]
        for grade, row in found:
            target.put(graded_key(loop.tuning_key, grade), loop.name, row.schedule, row.seconds)
        missing += [] if found else [loop]
    return missing
