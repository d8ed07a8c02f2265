"""Sets whose elements no other rank ever needs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.dsl.declare.sets import Set

__all__ = ["local_set"]


def local_set(context: Runtime, size: int, name: str, numbers: npt.NDArray[np.int64] | None = None) -> Set:
    """Return a set whose elements no other rank ever needs. Collective on several ranks.

    Parameters
    ----------
    context
        Where it lives.
    size
        Elements of this rank.
    name
        Used in messages and reports.
    numbers
        Of these among the elements of all ranks, which by default number theirs one after the other.
    """
    if not context.distributed:
        return Set(context, size, name)
    sizes = context.comm.allgather(size)
    if numbers is None:
        numbers = sum(sizes[: context.comm.rank]) + np.arange(size, dtype=np.int64)
    return Set(context, size, name, part=Part(0, size, size, size, size, numbers, sum(sizes)))
