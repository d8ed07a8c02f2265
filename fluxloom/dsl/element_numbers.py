"""Elements of a set named by numbers or by a mask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError
from fluxloom.dsl.incoming import unmasked

if TYPE_CHECKING:
    from fluxloom.dsl.sets import Set

__all__ = ["element_numbers"]


def element_numbers(parent: Set, indices: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return element numbers, ascending, each once, from numbers or a mask.

    Raises
    ------
    DatError
        If they are no numbers of elements.
    """
    values = np.asarray(unmasked(indices, f"subset of {parent}"))
    if values.dtype == bool:
        if values.shape not in ((parent.size,), parent.shape):
            raise DatError(f"mask of shape {values.shape} does not fit {parent}")
        values = np.flatnonzero(values)
    values = np.unique(values)
    if values.size and not np.issubdtype(values.dtype, np.integer):
        raise DatError(f"subset of {parent}: element numbers must be integers, got {values.dtype}")
    values = values.astype(np.int64)
    if values.size and (values[0] < 0 or values[-1] >= parent.size):
        raise DatError(f"subset of {parent}: element {values[-1] if values[0] >= 0 else values[0]} does not exist")
    return values
