"""Sets whose elements no other rank ever needs."""

from __future__ import annotations

import numpy as np

from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.dsl.declare.sets import Set

__all__ = ["local_set"]


def local_set(context: Runtime, size: int, name: str) -> Set:
    """Return a set whose elements no other rank ever needs. Collective on several ranks.

    Parameters
    ----------
    context
        Where it lives.
    size
        Elements of this rank; ranks number theirs one after the other.
    name
        Used in messages and reports.
    """
    if not context.ranked:
        return Set(context, size, name)
    sizes = context.comm.allgather(size)
    numbers = sum(sizes[: context.comm.rank]) + np.arange(size, dtype=np.int64)
    return Set(context, size, name, part=Part(0, size, size, size, size, numbers, sum(sizes)))
