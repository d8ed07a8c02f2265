"""Parts of what hangs together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["linked_parts"]


def linked_parts(count: int, first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Return the number of the part that each of some elements is in, from 0, ``(count,)``.

    Parameters
    ----------
    count
        Number of elements.
    first, second
        Pairs of elements that hang together.
    """
    from scipy.sparse import coo_array  # takes longer to import than all of this package
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(first), dtype=bool), (first, second)), shape=(count, count))
    return connected_components(graph, directed=False)[1].astype(np.int64)
