"""The planform of a straight tapered wing: chords and places of the leading edge along the span."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, radians, tan

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError

__all__ = ["WingPlanform"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class WingPlanform:
    """A straight tapered half of a wing: ``x`` along the stream, ``y`` along the span, ``z`` up.

    Attributes
    ----------
    root
        Chord at ``y = 0``, where the leading edge is at ``x = 0``.
    taper
        Chord at the tip over it.
    span
        Of the half wing.
    sweep
        Of the leading edge, degrees.

    Raises
    ------
    MeshError
        If a length is not positive.
    """

    root: float
    taper: float
    span: float
    sweep: float

    def __post_init__(self) -> None:
        for name in ("root", "taper", "span"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0.0):
                raise MeshError(f"planform: {name}: a positive number is wanted, not {value!r}")

    def chord(self, y: Array | float) -> Array:
        """Return the chord at places along the span, beyond it that at the tip."""
        return self.root * (1.0 - (1.0 - self.taper) * np.minimum(y, self.span) / self.span)

    def leading(self, y: Array | float) -> Array:
        """Return where the leading edge is, beyond the span that at the tip."""
        return np.minimum(y, self.span) * tan(radians(self.sweep))

    @property
    def area(self) -> float:
        """Of the half wing."""
        return 0.5 * self.root * (1.0 + self.taper) * self.span

    @property
    def mean_chord(self) -> float:
        """The mean aerodynamic chord, ``int c^2 dy / int c dy``."""
        t = self.taper
        return self.root * 2.0 / 3.0 * (1.0 + t + t * t) / (1.0 + t)
