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

An operator is a value, a frozen dataclass that derives from `Collision`: kernels take it as a constant and hold its
formula alone. The formulas are written once, in ``collisions_*.py``; kernels of a step are in
`fluxloom.lbm.streaming.steps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from fluxloom.core.access import Const
from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import Strategy, strategy_name
from fluxloom.kernel.frontend import func
from fluxloom.lbm.collisions.central import relax_central
from fluxloom.lbm.collisions.cumulant import relax_cumulants
from fluxloom.lbm.collisions.orders import Subgrid, relax_orders
from fluxloom.lbm.collisions.pairs import relax_pairs
from fluxloom.lbm.collisions.rates import Rates, check_rates, check_smagorinsky, shear_rate
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.moments import pair_sums, plain_sums

__all__ = ["BGK", "MRT", "TRT", "CentralMoments", "Collision", "Cumulant", "Regularised"]


class Collision(Strategy, what="collision", group="fluxloom.collisions"):
    """A collision operator.

    A member is a frozen dataclass whose ``__call__`` is a ``@func`` that changes the populations ``g`` in place. What
    it is given: ``g`` as `moments` leaves them, ``excess`` and ``momentum`` (`fluxloom.lbm.moments`), the ``force`` in
    the unit of storage or None, the `Lattice`, and the rates, a `Relaxation`. The other methods may be replaced.

    Attributes
    ----------
    needs_product
        Whether it is for lattices with all products of velocities alone.
    lost_from
        Reynolds number of a cell from which on cavities of few cells were lost, in a plane and in space: 40 cells and
        16 cells a side, at velocities of 0.05 and 0.1, within 25 of their times; all lived at half of it. Infinite:
        not measured.
    """

    needs_product: ClassVar[bool] = False
    lost_from: ClassVar[tuple[float, float]] = (inf, inf)

    if TYPE_CHECKING:  # a member has to have it: that of the family would be a wrong formula

        def __call__(self, g: Any, excess: Any, momentum: Any, force: Any, lattice: Any, rates: Any) -> None:
            """Leave the populations after the collision in ``g``."""

    @property
    def has_subgrid(self) -> bool:
        """Whether it has a model of the eddies that are smaller than cells."""
        return False

    @func
    def moments(self, g, momentum, lattice):
        """Set ``J = sum c_i g_i`` and return ``A = sum g_i``; ``g`` may be rewritten for the collision."""
        return plain_sums(g, momentum, lattice)

    def rates(self, viscosity: float) -> Rates:
        """Return the rates for a kinematic viscosity in lattice units.

        By default all are ``omega_s = 1 / (3 nu + 1/2)``.
        """
        rate = shear_rate(viscosity)
        return Rates(rate, rate, rate, rate)

    def check(self, lattice: Lattice) -> None:
        """Raise `SolverError` if the operator does not exist on a lattice."""
        if self.needs_product and not lattice.is_product:
            raise SolverError(
                f"{strategy_name(self)}: no {lattice.name}; it needs all products of velocities, which D2Q9 and D3Q27 "
                "have (on D3Q19 take trt or mrt)"
            )


class _Subgrid(Collision):
    """What operators that may have the subgrid model of Smagorinsky have in common."""

    smagorinsky: Const[float]

    def __post_init__(self) -> None:
        check_smagorinsky(self.type_name, self.smagorinsky)

    @property
    def has_subgrid(self) -> bool:
        """Whether the constant is not 0."""
        return self.smagorinsky > 0


class _InPairs(_Subgrid):
    """What operators on sums and differences of pairs have in common."""

    @property
    def subgrid(self) -> Subgrid | None:
        """Rates that follow that of the shear where a model changes it: all."""
        return Subgrid() if self.has_subgrid else None

    @func
    def half_odd(self, shear, time):
        """``(1 - omega_o) / 2 = (1 - omega_s) / 2``.

        Half of what is kept of the odd part, whose rate follows that of the shear.
        """
        return 0.5 * shear

    @func
    def moments(self, g, momentum, lattice):
        """``J = sum c_i g_i``, ``A = sum g_i``, and sums and differences of pairs."""
        return pair_sums(g, momentum, lattice)

    @func
    def __call__(self, g, excess, momentum, force, lattice, rates):
        """``f' = sum_n (1 - omega_n) P_n f + omega_n P_n f^eq``: by orders, see `fluxloom.lbm.collisions.orders`."""
        relax_orders(g, excess, momentum, force, lattice, rates, self)


class _Fast(_InPairs):
    """What operators with one rate for each parity have in common."""

    @func
    def __call__(self, g, excess, momentum, force, lattice, rates):
        """``f' = f - omega_+ (f_+ - f_+^eq) - omega_- (f_- - f_-^eq)``.

        In the fast form, or with a subgrid model by orders.
        """
        if self.has_subgrid:
            relax_orders(g, excess, momentum, force, lattice, rates, self)
        else:
            relax_pairs(g, excess, momentum, force, lattice, rates)


@dataclass(frozen=True)
class BGK(_Fast, name="bgk"):
    """One rate for all, ``f' = f - omega (f - f^eq)``.

    Y. H. Qian, D. d'Humieres, P. Lallemand, Europhysics Letters 17 (1992) 479-484.

    Attributes
    ----------
    smagorinsky
        Constant of the subgrid model; 0: none.
    """

    smagorinsky: Const[float] = 0.0
    lost_from = (20.0, 20.0)

    def rates(self, viscosity: float) -> Rates:
        """Return one rate four times, ``omega = 1 / (3 nu + 1/2)``."""
        rate = shear_rate(viscosity)
        return Rates(rate, rate, rate, rate, self.smagorinsky)


@dataclass(frozen=True)
class TRT(_Fast, name="trt"):
    """Two rates, for the even and for the odd part of the populations.

    I. Ginzburg, F. Verhaeghe, D. d'Humieres, Communications in Computational Physics 3 (2008) 427-478.

    Attributes
    ----------
    magic
        ``(1 / even - 1/2)(1 / odd - 1/2)`` of both rates. If it is fixed, steady flows of one Reynolds number are the
        same for all viscosities. 3/16 puts half-way walls exactly half-way in a channel, 1/4 is the most
        stable, 1/12 removes the third-order error of advection.
    smagorinsky
        Constant of the subgrid model; 0: none.
    """

    magic: float = 3.0 / 16.0
    smagorinsky: Const[float] = 0.0
    lost_from = (40.0, 40.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.magic > 0:
            raise SolverError(f"trt: the magic parameter must be positive, not {self.magic!r} (3/16 is usual)")

    def rates(self, viscosity: float) -> Rates:
        """Return ``omega_+ = 1 / (3 nu + 1/2)`` and ``omega_- = 1 / (Lambda / (1 / omega_+ - 1/2) + 1/2)``."""
        even = shear_rate(viscosity)
        return Rates(even, even, 1.0 / (self.magic / (1.0 / even - 0.5) + 0.5), even, self.smagorinsky)

    @func
    def half_odd(self, shear, time):
        """``(1 - omega_-) / 2`` with ``omega_- = 1 / (Lambda / (tau - 1/2) + 1/2)``.

        The magic parameter ``Lambda`` stays.
        """
        return 0.5 - 0.5 / (self.magic / (time - 0.5) + 0.5)


@dataclass(frozen=True)
class MRT(_InPairs, name="mrt"):
    """A rate for each of four kinds of Hermite moments; see `fluxloom.lbm.collisions.orders`.

    D. d'Humieres, I. Ginzburg, M. Krafczyk, P. Lallemand, L.-S. Luo, Philosophical Transactions A 360 (2002) 437-451:
    the default rates are theirs, though their moments are orthogonal without the weights.

    Attributes
    ----------
    bulk
        Rate of the trace of the stresses; ``None``, in Python alone: that of the shear.
    odd
        Rate of the orders 3 and 5; ``None``, in Python alone: that of the shear.
    even
        Rate of the orders 4 and 6; ``None``, in Python alone: that of the shear.
    smagorinsky
        Constant of the subgrid model; 0: none.
    """

    bulk: float | None = 1.19
    odd: float | None = 1.2
    even: float | None = 1.4
    smagorinsky: Const[float] = 0.0
    lost_from = (80.0, 40.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rates("mrt", {"bulk": self.bulk, "odd": self.odd, "even": self.even})

    def rates(self, viscosity: float) -> Rates:
        """Return ``omega_s = 1 / (3 nu + 1/2)``, that of the viscosity, and those that were set."""
        shear = shear_rate(viscosity)
        bulk, odd, even = (shear if rate is None else rate for rate in (self.bulk, self.odd, self.even))
        return Rates(shear, bulk, odd, even, self.smagorinsky)

    @property
    def subgrid(self) -> Subgrid | None:
        """Rates that follow that of the shear where a model changes it."""
        return Subgrid(self.bulk is None, self.even is None, self.odd is None) if self.has_subgrid else None


@dataclass(frozen=True)
class Regularised(_InPairs, name="regularised"):
    """BGK that keeps nothing but the stresses.

    J. Latt, B. Chopard, Mathematics and Computers in Simulation 72 (2006) 165-168.

    Attributes
    ----------
    smagorinsky
        Constant of the subgrid model; 0: none.
    """

    smagorinsky: Const[float] = 0.0
    lost_from = (40.0, 20.0)

    def rates(self, viscosity: float) -> Rates:
        """Return ``omega_s = omega_b = 1 / (3 nu + 1/2)``, ``omega_o = omega_e = 1``."""
        shear = shear_rate(viscosity)
        return Rates(shear, shear, 1.0, 1.0, self.smagorinsky)

    @property
    def subgrid(self) -> Subgrid | None:
        """Rates that follow that of the shear where a model changes it."""
        return Subgrid(bulk=True, even=False, odd=False) if self.has_subgrid else None


class _ByOrders(_Subgrid):
    """What operators that relax products of moments by their order have in common."""

    needs_product = True
    bulk: float | None
    odd: Const[float]
    even: Const[float]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rates(self.type_name, {"bulk": self.bulk, "odd": self.odd, "even": self.even})

    def rates(self, viscosity: float) -> Rates:
        """Return ``omega_s = 1 / (3 nu + 1/2)``, that of the viscosity, and those that were set."""
        shear = shear_rate(viscosity)
        return Rates(shear, shear if self.bulk is None else self.bulk, self.odd, self.even, self.smagorinsky)

    @property
    def keeps_odd(self) -> bool:
        """Whether anything is kept of the orders 3 and 5."""
        return self.odd != 1

    @property
    def keeps_even(self) -> bool:
        """Whether anything is kept of the orders 4 and 6."""
        return self.even != 1


@dataclass(frozen=True)
class CentralMoments(_ByOrders, name="central"):
    """Moments relative to the velocity of the fluid, with full equilibrium; see `fluxloom.lbm.collisions.central`.

    M. Geier, A. Greiner, J. G. Korvink, Physical Review E 73 (2006) 066705.

    Attributes
    ----------
    bulk
        Rate of the trace of the stresses; ``None``, in Python alone: that of the shear.
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
    odd: Const[float] = 1.0
    even: Const[float] = 1.0
    corrected: bool = False
    smagorinsky: Const[float] = 0.0
    lost_from = (640.0, 40.0)

    @func
    def __call__(self, g, excess, momentum, force, lattice, rates):
        """``kappa' = kappa - omega (kappa - kappa^eq)`` of central moments, see `fluxloom.lbm.collisions.central`."""
        relax_central(g, excess, momentum, force, lattice, rates, self)


@dataclass(frozen=True)
class Cumulant(_ByOrders, name="cumulant"):
    """Cumulants, with a viscosity that is the same in any frame; see `fluxloom.lbm.collisions.cumulant`.

    M. Geier, M. Schoenherr, A. Pasquali, M. Krafczyk, Computers & Mathematics with Applications 70 (2015) 507-547.

    Attributes
    ----------
    bulk
        Rate of the trace of the stresses; ``None``, in Python alone: that of the shear.
    odd
        Rate of the orders 3 and 5.
    even
        Rate of the orders 4 and 6.
    smagorinsky
        Constant of the subgrid model; 0: none.
    """

    bulk: float | None = 1.0
    odd: Const[float] = 1.0
    even: Const[float] = 1.0
    smagorinsky: Const[float] = 0.0
    corrected = True
    lost_from = (320.0, 80.0)

    @func
    def __call__(self, g, excess, momentum, force, lattice, rates):
        """``C' = (1 - omega) C`` of cumulants from order 3 on, see `fluxloom.lbm.collisions.cumulant`."""
        relax_cumulants(g, excess, momentum, force, lattice, rates, self)
