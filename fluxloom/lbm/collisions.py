r"""Collision operators: what a cell does to the populations that have arrived.

Each operator relaxes moments of the populations towards those of equilibrium, with one rate for each kind of moment
(`Rates`). The rate of the stresses is set by the viscosity, :math:`\omega_s = 1 / (3 \nu + 1/2)`; the others are free,
and operators differ in them and in what they call a moment:

=================== ==================================================== ============================================
`BGK`               populations, one rate                                Qian, d'Humieres, Lallemand 1992
`TRT`               pairs of populations, two rates                      Ginzburg, Verhaeghe, d'Humieres 2008
`MRT`               Hermite moments, a rate for each of four kinds       d'Humieres et al. 2002; Shan, Yuan, Chen 2006
`Regularised`       `MRT` in which only stresses are kept                Latt, Chopard 2006
`CentralMoments`    moments relative to the velocity of the fluid        Geier, Greiner, Korvink 2006
`Cumulant`          cumulants; viscosity the same in any frame           Geier et al. 2015
=================== ==================================================== ============================================

Operators are frozen values. What they compute is written once, in the kernel language, in ``collisions_*.py``;
`fluxloom.lbm.steps` makes kernels of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Protocol

from fluxloom.core.errors import SolverError
from fluxloom.lbm.collisions_central import central_collision, check_product
from fluxloom.lbm.collisions_cumulant import cumulant_collision
from fluxloom.lbm.collisions_operator import Operator, operator_of
from fluxloom.lbm.collisions_orders import Subgrid, order_collision
from fluxloom.lbm.collisions_pairs import pair_collision
from fluxloom.lbm.collisions_rates import Rates, check_rates, check_smagorinsky, shear_rate
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.moments import pair_sums, plain_sums

__all__ = ["BGK", "COLLISIONS", "MRT", "TRT", "CentralMoments", "Collision", "Cumulant", "Regularised"]


class Collision(Protocol):
    """A collision operator with its parameters."""

    @property
    def name(self) -> str:
        """What case files call it."""
        ...

    @property
    def smagorinsky(self) -> float:
        """Constant of the subgrid model; 0: none."""
        ...

    def check(self, lattice: Lattice) -> None:
        """Raise `SolverError` if it does not exist on a lattice, or a parameter is out of range."""
        ...

    def rates(self, viscosity: float) -> Rates:
        """Return the rates for a kinematic viscosity in lattice units."""
        ...

    def operator(self, lattice: Lattice, forced: bool) -> Operator:
        """Return what it computes, with or without a force."""
        ...


@dataclass(frozen=True)
class BGK:
    """One rate for all (Y. H. Qian, D. d'Humieres, P. Lallemand, Europhysics Letters 17 (1992) 479-484).

    Attributes
    ----------
    smagorinsky
        Constant of the subgrid model; 0: none.
    """

    smagorinsky: float = 0.0
    name = "bgk"

    def check(self, lattice: Lattice) -> None:
        """It exists on all lattices."""
        check_smagorinsky(self.name, self.smagorinsky)

    def rates(self, viscosity: float) -> Rates:
        """Return one rate four times."""
        rate = shear_rate(viscosity)
        return Rates(rate, rate, rate, rate)

    def operator(self, lattice: Lattice, forced: bool) -> Operator:
        """Return what it computes."""
        return pair_operator(lattice, forced, Subgrid(self.smagorinsky > 0))


@dataclass(frozen=True)
class TRT:
    r"""Two rates, for the even and for the odd part of the populations.

    I. Ginzburg, F. Verhaeghe, D. d'Humieres, Communications in Computational Physics 3 (2008) 427-478.

    Attributes
    ----------
    magic
        :math:`\Lambda = (1/\omega_+ - 1/2)(1/\omega_- - 1/2)`. If it is fixed, steady flows of one Reynolds number
        are the same for all viscosities. 3/16 puts half-way walls exactly half-way in a channel, 1/4 is the most
        stable, 1/12 removes the third-order error of advection.
    smagorinsky
        Constant of the subgrid model; 0: none.
    """

    magic: float = 3.0 / 16.0
    smagorinsky: float = 0.0
    name = "trt"

    def check(self, lattice: Lattice) -> None:
        """It exists on all lattices."""
        if not self.magic > 0:
            raise SolverError(f"trt: the magic parameter must be positive, not {self.magic!r} (3/16 is usual)")
        check_smagorinsky(self.name, self.smagorinsky)

    def rates(self, viscosity: float) -> Rates:
        """Return the even rate, which is that of the viscosity, and the odd one."""
        even = shear_rate(viscosity)
        return Rates(even, even, 1.0 / (self.magic / (1.0 / even - 0.5) + 0.5), even)

    def operator(self, lattice: Lattice, forced: bool) -> Operator:
        """Return what it computes."""
        return pair_operator(lattice, forced, Subgrid(self.smagorinsky > 0, magic=self.magic))


@dataclass(frozen=True)
class MRT:
    """A rate for each of four kinds of Hermite moments; see `fluxloom.lbm.collisions_orders`.

    D. d'Humieres, I. Ginzburg, M. Krafczyk, P. Lallemand, L.-S. Luo, Philosophical Transactions A 360 (2002) 437-451:
    the default rates are theirs, though their moments are orthogonal without the weights.

    Attributes
    ----------
    bulk
        Rate of the trace of the stresses; ``None``: that of the shear.
    odd
        Rate of the orders 3 and 5; ``None``: that of the shear.
    even
        Rate of the orders 4 and 6; ``None``: that of the shear.
    smagorinsky
        Constant of the subgrid model; 0: none.
    """

    bulk: float | None = 1.19
    odd: float | None = 1.2
    even: float | None = 1.4
    smagorinsky: float = 0.0
    name = "mrt"

    def check(self, lattice: Lattice) -> None:
        """It exists on all lattices."""
        check_rates(self.name, {"bulk": self.bulk, "odd": self.odd, "even": self.even})
        check_smagorinsky(self.name, self.smagorinsky)

    def rates(self, viscosity: float) -> Rates:
        """Return the rate of the viscosity and those that were set."""
        shear = shear_rate(viscosity)
        bulk, odd, even = (shear if rate is None else rate for rate in (self.bulk, self.odd, self.even))
        return Rates(shear, bulk, odd, even)

    def operator(self, lattice: Lattice, forced: bool) -> Operator:
        """Return what it computes."""
        subgrid = Subgrid(self.smagorinsky > 0, self.bulk is None, self.even is None, self.odd is None)
        return operator_of(lattice, forced, pair_sums(lattice), order_collision(lattice, forced, subgrid))


@dataclass(frozen=True)
class Regularised:
    """BGK that keeps nothing but the stresses.

    J. Latt, B. Chopard, Mathematics and Computers in Simulation 72 (2006) 165-168.

    Attributes
    ----------
    smagorinsky
        Constant of the subgrid model; 0: none.
    """

    smagorinsky: float = 0.0
    name = "regularised"

    def check(self, lattice: Lattice) -> None:
        """It exists on all lattices."""
        check_smagorinsky(self.name, self.smagorinsky)

    def rates(self, viscosity: float) -> Rates:
        """Return the rate of the viscosity, and one."""
        shear = shear_rate(viscosity)
        return Rates(shear, shear, 1.0, 1.0)

    def operator(self, lattice: Lattice, forced: bool) -> Operator:
        """Return what it computes."""
        return MRT(None, 1.0, 1.0, self.smagorinsky).operator(lattice, forced)


class _ByOrders:
    """What operators that relax products of moments by their order have in common."""

    name: ClassVar[str]
    bulk: float | None
    odd: float
    even: float
    smagorinsky: float

    def check(self, lattice: Lattice) -> None:
        """It exists on D2Q9 and D3Q27."""
        check_product(self.name, lattice)
        check_rates(self.name, {"bulk": self.bulk, "odd": self.odd, "even": self.even})
        check_smagorinsky(self.name, self.smagorinsky)

    def rates(self, viscosity: float) -> Rates:
        """Return the rate of the viscosity and those that were set."""
        shear = shear_rate(viscosity)
        return Rates(shear, shear if self.bulk is None else self.bulk, self.odd, self.even)

    @property
    def _subgrid(self) -> Subgrid:
        """What differs from the plain operator."""
        return Subgrid(self.smagorinsky > 0, self.bulk is None, self.even != 1, self.odd != 1)


@dataclass(frozen=True)
class CentralMoments(_ByOrders):
    """Moments relative to the velocity of the fluid, with full equilibrium; see `fluxloom.lbm.collisions_central`.

    M. Geier, A. Greiner, J. G. Korvink, Physical Review E 73 (2006) 066705.

    Attributes
    ----------
    bulk
        Rate of the trace of the stresses; ``None``: that of the shear.
    odd
        Rate of the orders 3 and 5.
    even
        Rate of the orders 4 and 6.
    corrected
        Whether the viscosity is freed from what the lattice does to it in a flow along an axis.
    smagorinsky
        Constant of the subgrid model; 0: none.
    """

    bulk: float | None = 1.0
    odd: float = 1.0
    even: float = 1.0
    corrected: bool = False
    smagorinsky: float = 0.0
    name = "central"

    def operator(self, lattice: Lattice, forced: bool) -> Operator:
        """Return what it computes."""
        relax = central_collision(lattice, forced, self._subgrid, self.corrected)
        return operator_of(lattice, forced, plain_sums(lattice), relax)


@dataclass(frozen=True)
class Cumulant(_ByOrders):
    """Cumulants, with a viscosity that is the same in any frame; see `fluxloom.lbm.collisions_cumulant`.

    M. Geier, M. Schoenherr, A. Pasquali, M. Krafczyk, Computers & Mathematics with Applications 70 (2015) 507-547.

    Attributes
    ----------
    bulk
        Rate of the trace of the stresses; ``None``: that of the shear.
    odd
        Rate of the orders 3 and 5.
    even
        Rate of the orders 4 and 6.
    smagorinsky
        Constant of the subgrid model; 0: none.
    """

    bulk: float | None = 1.0
    odd: float = 1.0
    even: float = 1.0
    smagorinsky: float = 0.0
    name = "cumulant"

    def operator(self, lattice: Lattice, forced: bool) -> Operator:
        """Return what it computes."""
        return operator_of(lattice, forced, plain_sums(lattice), cumulant_collision(lattice, forced, self._subgrid))


def pair_operator(lattice: Lattice, forced: bool, subgrid: Subgrid) -> Operator:
    """Return BGK or TRT: the fast form, or with a subgrid model the one of orders."""
    relax = order_collision(lattice, forced, subgrid) if subgrid.model else pair_collision(lattice, forced)
    return operator_of(lattice, forced, pair_sums(lattice), relax)


COLLISIONS: Mapping[str, type[BGK | TRT | MRT | Regularised | CentralMoments | Cumulant]] = MappingProxyType(
    {kind.name: kind for kind in (BGK, TRT, MRT, Regularised, CentralMoments, Cumulant)}
)
"""Operators by the names that case files and commands call them."""
