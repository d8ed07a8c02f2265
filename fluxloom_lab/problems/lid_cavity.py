"""The square or cube under a lid that slides along x: its walls, and published extremes.

At Reynolds number 1000 the plane flow is steady, and its extremes on the centre lines are known to seven digits.

References
----------
O. Botella, R. Peyret: "Benchmark spectral results on the lid-driven cavity flow", Computers & Fluids 27 (1998) 421-433.
"""

from __future__ import annotations

from collections.abc import Iterable

from fluxloom.fv.incompressible.boundary import NoSlip

__all__ = ["BOTELLA_PEYRET", "LID", "SOURCE", "lid_walls"]

LID = "ymax"
"""The patch that moves."""

BOTELLA_PEYRET = {"least u": -0.3885698, "largest v": 0.3769447, "least v": -0.5270771}
"""Least u on the vertical centre line, largest and least v on the horizontal one, at Reynolds number 1000."""

SOURCE = "Botella and Peyret 1998, Chebyshev collocation"
"""Where they are from, in a few words."""


def lid_walls(patches: Iterable[str], dimension: int = 2, *, moving: Iterable[str] = (LID,)) -> dict[str, NoSlip]:
    """Return walls at rest, but for the lid, whose speed is 1.

    Parameters
    ----------
    patches
        All of them.
    moving
        Those that are the lid.
    """
    lid = frozenset(moving)
    return {name: NoSlip((1.0, 0.0, 0.0)[:dimension]) if name in lid else NoSlip() for name in patches}
