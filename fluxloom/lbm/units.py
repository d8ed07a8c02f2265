"""Units of storage: what populations are multiplied by in memory.

Half precision has 11 binary digits above ``6e-5`` and loses them below. Populations less their weights are of the size
of a Mach number times a weight, so they are stored ``2^15`` times as large: digits are kept down to ``2e-9``, and
``|g| <= 1`` stays below the largest number, 65504. Collision is homogeneous in the populations: kernels work on what is
stored, with `storage_unit` in place of the density one, and multiply nothing.

What a step adds to a population is rounded to the last of its 11 digits, however it is scaled: a change of less than
one in some thousands is lost, step after step. Flows that move do not feel it; one that a small force drives from rest
stops growing too early (measured in ``docs/guide/lattice.md``; the solver warns).

M. Lehmann, M. J. Krause, G. Amati, M. Sega, J. Harting, S. Gekle, Physical Review E 106 (2022) 015308 (their FP16S).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["storage_unit"]

HALF_UNIT = 2.0**15
"""Largest power of two with which ``|g| <= 1`` has room in half precision."""


def storage_unit(dtype: npt.DTypeLike) -> float:
    """Return the power of two by which populations of a storage type are multiplied: 1 for all but half precision."""
    return HALF_UNIT if np.dtype(dtype).itemsize < 4 else 1.0
