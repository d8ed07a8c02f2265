"""What is forced, and how: the bodies of an immersed boundary and the numbers of the method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fluxloom.lbm.immersed.markers.deltas import Delta, Peskin
from fluxloom.lbm.immersed.markers.spreading import Balanced, MarkerWeights, Pinelli
from fluxloom.lbm.immersed.motion import Contact, Elastic, ImmersedBody

__all__ = ["Forcing"]


@dataclass(frozen=True)
class Forcing:
    """Bodies and options; see `fluxloom.lbm.immersed.ImmersedBoundary`.

    Attributes
    ----------
    factor
        Of the force at a marker: 2 where the velocity meets the wanted one, 1 where that after collision does.
    """

    bodies: Sequence[ImmersedBody]
    delta: Delta
    iterations: int
    factor: float
    weights: MarkerWeights | None
    margin: int
    contact: Contact | None
    scattered: bool

    def weights_in(self, dimensions: int) -> MarkerWeights:
        """Return how weights of fixed markers are found."""
        return self.weights or (Pinelli() if dimensions == 2 else Balanced())

    @property
    def elastic(self) -> tuple[str, ...]:
        """Names of elastic bodies, which blow up if they are too stiff."""
        return tuple(body.name for body in self.bodies if isinstance(body.motion, Elastic))

    @property
    def softer(self) -> str:
        """What to change about elastic bodies in a flow that blew up, behind a semicolon; empty: there are none."""
        other = "" if isinstance(self.delta, Peskin) else ", or take delta=Peskin()"
        return f"; lower the stiffness of {', '.join(self.elastic)}{other}" if self.elastic else ""
