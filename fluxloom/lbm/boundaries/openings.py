"""Schemes of openings: how populations that arrive through a side get a velocity or a pressure that is set.

Sources: Q. Zou, X. He, *Physics of Fluids* 9 (1997) 1591; J. Latt, B. Chopard, O. Malaspinas, M. Deville, A. Michler,
*Physical Review E* 77 (2008) 056703; formulas are in the modules that the schemes name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import Strategy
from fluxloom.kernel.frontend import func
from fluxloom.lbm.boundaries.cell_kernels import regularise, zou_he
from fluxloom.lbm.lattices import SOUND_SPEED_SQUARED

__all__ = [
    "AntiBounceBack", "BounceBack", "OpeningScheme", "PressureScheme", "RegularisedCells", "VelocityScheme", "ZouHe",
]  # fmt: skip


class OpeningScheme(Strategy, what="scheme of an opening", group="fluxloom.opening_schemes"):
    """How a side sets a velocity or a pressure.

    Attributes
    ----------
    on_cells
        Whether all populations of a cell are looked at where they arrive, and completed, not link by link.
    """

    on_cells: ClassVar[bool] = False


class VelocityScheme(OpeningScheme, what="scheme of a velocity", group="fluxloom.velocity_schemes"):
    """A scheme that sets a velocity."""


class PressureScheme(OpeningScheme, what="scheme of a pressure", group="fluxloom.pressure_schemes"):
    """A scheme that sets a pressure."""


@dataclass(frozen=True)
class RegularisedCells(VelocityScheme, PressureScheme, name="regularised"):
    """At the centres of cells, populations regularised; see `fluxloom.lbm.boundaries.cell_kernels`."""

    on_cells = True

    @func
    def complete(self, f, g, above, j, u, lattice, side, unit):
        """Store all populations.

        ``g_k = w_k [rho - 1 + 3 c_k j + rho (9/2 (c_k u)^2 - 3/2 u^2) + 9/2 c_k c_k : Pi - 3/2 tr Pi]``.
        """
        regularise(f, g, above, j, u, lattice, side, unit)


@dataclass(frozen=True)
class ZouHe(VelocityScheme, PressureScheme, name="zou-he"):
    """At the centres of cells, unknown populations completed; see `fluxloom.lbm.boundaries.cell_kernels`."""

    on_cells = True

    @func
    def complete(self, f, g, above, j, u, lattice, side, unit):
        """Store the unknown populations.

        ``g_k = g_k' + w_k [6 j_n + 18 sum_t c_kt (j_t - sum_{c_l n = 0} c_lt g_l)]``.
        """
        zou_he(f, g, above, j, u, lattice, side, unit)


@dataclass(frozen=True)
class BounceBack(VelocityScheme, name="bounce-back"):
    """Half a cell beyond the cells, where walls are; see `fluxloom.lbm.boundaries.link_kernels`."""


@dataclass(frozen=True)
class AntiBounceBack(PressureScheme, name="anti-bounce-back"):
    """Half a cell beyond the cells, with the velocity that comes out; see `.pressure_kernels`.

    Attributes
    ----------
    absorbing
        Whether waves leave through the side: the density goes with them, and back to what is set. Otherwise it is held
        in every step, and waves are reflected.
    rate
        What is made good of the distance from the density in a step, of a side that absorbs. None, in Python alone:
        ``c_s / 4 n`` with ``n`` cells across the box. Mean changes of what leaves are ``1 + c_s / (rate n)`` times as
        slow as with a pressure that is held.

    Raises
    ------
    SolverError
        For a rate out of range, or of a side that does not absorb.
    """

    absorbing: bool = True
    rate: float | None = None

    def __post_init__(self) -> None:
        if self.rate is not None and not self.absorbing:
            raise SolverError("AntiBounceBack(rate=...): the pressure is held in every step, as it absorbs no waves")
        if self.rate is not None and not 0 < self.rate < 1:
            raise SolverError(
                f"AntiBounceBack(rate={self.rate!r}): a share of the distance each step is wanted, about 0.001"
            )

    def kept(self, cells: int) -> float | None:
        """Return ``1 - K``, what is kept in a step of the distance from the density; None: none.

        ``K = c_s / 4 n`` with ``n`` cells across the box, unless `rate` is given.
        """
        if not self.absorbing:
            return None
        return 1.0 - (self.rate if self.rate is not None else 0.25 * SOUND_SPEED_SQUARED**0.5 / cells)
