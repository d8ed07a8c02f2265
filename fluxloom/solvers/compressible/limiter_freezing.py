r"""When the limiter values follow the states of a steady flow, and when they stay.

A limiter takes least and largest values around a cell and the least of its faces. These have kinks, at which a steady
flow does not settle: cells go to and fro, the residual stops falling. So the limiter values :math:`\phi` are taken from
the states in three ways, one after the other:

1. *live*: with each residual, :math:`\phi = L(w)`, while the flow finds its shape;
2. *following*: a part of the way after each step, :math:`\phi \leftarrow \phi + a (L(w) - \phi)`; a residual takes them
   as they are. Where this settles, :math:`\phi = L(w)`: it is the steady flow of the live limiter;
3. *frozen*: they stay. The residual is then a smooth function of the states and falls as far as numbers go. What
   converges is the scheme with these limiter values: it differs from that of the live limiter by what following had
   left.

Where the residual grows again to three times the level at which following begins, limiter values are live again.

References
----------
V. Venkatakrishnan: *Convergence to steady state solutions of the Euler equations on unstructured grids with limiters*.
J. Comput. Phys. 118, 1995 (sec. 5: why residuals stall, and limiters that are frozen).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.chain import Chain

if TYPE_CHECKING:
    from fluxloom.solvers.compressible.flow import CompressibleFlow

__all__ = ["LimiterFollowing", "LimiterFreezing"]

_LOWER = 0.9
"""A residual below this part of the least one so far counts as lower."""
_NEAR, _FEW = 1e-4, 8
"""Part of the largest residual below which relaxed limiter values are near those of the states, and steps without a
lower residual after which they stay then: limiters with kinks do not come nearer."""
_THAW = 3.0
"""Over the level at which limiter values begin to follow: above it they are live again."""


@dataclass(frozen=True)
class LimiterFreezing:
    """When limiter values follow the states slowly, and when they stay.

    Attributes
    ----------
    relax_below
        Part of the largest residual so far at which limiter values begin to follow; 0: they are live all the time.
    relaxation
        Part of the way that they go in a step then.
    freeze_below
        Part of the largest residual so far at which they stay from then on; 0: never.
    patience
        Steps without a lower residual, after which limiter values that follow stay as well, below ``relax_below``, and
        at most 8 below a residual of 1e-4: kinks of a limiter do not get nearer then; 0: no end.

    Raises
    ------
    SolverError
        If a number is out of range.
    """

    relax_below: float
    relaxation: float
    freeze_below: float
    patience: int

    def __post_init__(self) -> None:
        for name, high in (("relax_below", 1.0), ("relaxation", 1.0), ("freeze_below", 1.0)):
            value = getattr(self, name)
            if not (isfinite(value) and 0.0 <= value <= high):
                raise SolverError(f"limiter values: {name}: from 0 to {high:g} is wanted, not {value!r}")
        value = self.patience
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
            raise SolverError(f"limiter values: patience is a whole number of at least 0, not {value!r}")
        if self.relax_below and not self.relaxation:
            raise SolverError("relaxation is 0, so limiter values never move; take relax_below = 0, or a relaxation")


class LimiterFollowing:
    """Decides how the limiter's limiter values of a flow are found in the next step; see the module.

    Parameters
    ----------
    flow
        Whose limiter values.
    w
        The states whose residual has just been found when `renew` is called.
    how
        When.

    Attributes
    ----------
    weight
        How far limiter values go: 1: they are live; between: they follow; 0: they stay.
    """

    remembers = ("weight", "_slow", "_lowest", "_waited")

    def __init__(self, flow: CompressibleFlow, w: Dat, how: LimiterFreezing) -> None:
        self.flow, self.how, self._w = flow, how, w
        self._renew: Chain | None = None
        self.weight, self._slow, self._lowest, self._waited = 1.0, False, float("inf"), 0

    def begin(self) -> None:
        """Make the limiter values live."""
        self.flow.freeze(False)
        self.weight, self._slow = 1.0, False

    def look(self, part: float) -> None:
        """Decide how it goes on, with the residual now as a part of the largest one so far."""
        how, flow = self.how, self.flow
        if not (how.relax_below and flow.limiting):
            return
        if not self._slow:
            if part <= how.relax_below:
                flow.freeze()
                self._slow, self.weight, self._lowest, self._waited = True, how.relaxation, part, 0
        elif part > _THAW * how.relax_below:
            self.begin()
        elif self.weight > 0.0:
            lower = part < _LOWER * self._lowest
            self._lowest, self._waited = (part, 0) if lower else (self._lowest, self._waited + 1)
            patience = how.patience if part > _NEAR else min(how.patience, _FEW)
            tired = 0 < patience <= self._waited and part <= how.relax_below
            if tired or part <= how.freeze_below:
                self.weight = 0.0

    def renew(self) -> bool:
        """Relax the limiter values; return whether they changed, so that residuals are others."""
        if not (self._slow and self.weight > 0.0):
            return False
        if self._renew is None:
            self._renew = Chain(self.flow.renewal(self._w, self.how.relaxation), fuse=False, name="relax limiter")
        self._renew()
        return True
