r"""Eddy viscosity of large-eddy simulation: what the scales that the mesh does not resolve take from the flow.

.. math:: \nu_t = (C \Delta)^2 D(g), \quad g_{ij} = \partial u_i / \partial x_j, \quad \Delta = \Omega^{1/3}

``D`` (1/s) is homogeneous of degree one, so that kernels compute it of ``n = g / |g|`` and multiply by ``|g|``: no
power overflows, and what is compared with zero has no unit. The models differ in where ``D`` vanishes:

=============  ==========  ==============  =====  ====================  =========
``D``          pure shear  solid rotation  2D     axisymmetric strain   at a wall
=============  ==========  ==============  =====  ====================  =========
`Smagorinsky`  ``|g|``     0               not 0  not 0                 y^0
`Wale`         0           not 0           not 0  not 0                 y^3
`Qr`           0           0               0      0 for ``det S >= 0``  y^1
`Sigma`        0           0               0      0                     y^3
`S3pqr` "pq"   0           not 0           not 0  not 0                 y^3
`S3pqr` "pr"   0           0               0      not 0                 y^3
`S3pqr` "qr"   0           0               0      not 0                 y^3
=============  ==========  ==============  =====  ====================  =========

Where the velocity is prescribed, at walls and inflow, ``nu_t`` of the face is 0 in flow on cells, whatever the model
says of the cell beside it.

In two dimensions the third row and column of ``g`` are zero and a volume is an area times a depth of one; the models
are meant for three.

The constants of `S3pqr` are those with which uniformly random tensors without trace, on average, dissipate as much as
with `Smagorinsky` and ``C = 0.165``. That of `Sigma` agrees with this within 2 %, that of `Wale` with ``C = 0.1``
within 7 %. (From ``C^2 <D S:S> = C_s^2 <D_s S:S>``; the tests compute it.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Const, Read, Write
from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.core.strategies import Strategy, is_ours, strategy_name
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import acos, cos, max, min, pow, sqrt, zeros

__all__ = [
    "EddyViscosity", "Qr", "S3pqr", "Sigma", "Smagorinsky", "Wale", "eddy_viscosity", "filter_areas",
]  # fmt: skip

NOTHING = 1.0e-30
"""Sum of the squared minors of a tensor of length one below which they are rounding: ``g`` is a pure shear."""


# ------------------------------------------------------------------------------------------ invariants


@func
def normalize(g, n):
    """Write ``n = g / |g|``, zero for ``g = 0``, and return ``|g| = sqrt(g_ij g_ij)``."""
    total = 0.0
    for m in range(9):
        total += g[m] * g[m]
    size = sqrt(total)
    inverse = 1.0 / size if size > 0.0 else 0.0
    for m in range(9):
        n[m] = inverse * g[m]
    return size


@func
def symmetric(g, s):
    """Write ``s = (g + g^T) / 2`` and return ``s : s``."""
    total = 0.0
    for i in range(3):
        for j in range(3):
            s[3 * i + j] = 0.5 * (g[3 * i + j] + g[3 * j + i])
            total += s[3 * i + j] * s[3 * i + j]
    return total


@func
def cofactors(g, m):
    """Write the cofactors ``m_ij`` of ``g`` and return ``Q = sum m_ij^2``, the second invariant of ``g g^T``.

    ``m_ij = g_{i+1,j+1} g_{i+2,j+2} - g_{i+1,j+2} g_{i+2,j+1}``, indices modulo 3.
    """
    total = 0.0
    for i in range(3):
        a = 3 * ((i + 1) % 3)
        b = 3 * ((i + 2) % 3)
        for j in range(3):
            c = (j + 1) % 3
            d = (j + 2) % 3
            m[3 * i + j] = g[a + c] * g[b + d] - g[a + d] * g[b + c]
            total += m[3 * i + j] * m[3 * i + j]
    return total


@func
def determinant(g, m):
    """Return ``det g = sum_j g_0j m_0j`` from the cofactors ``m`` of its first row."""
    return g[0] * m[0] + g[1] * m[1] + g[2] * m[2]


@func
def third(det, q):
    """Return ``R = det^2``, at most ``(Q / 3)^(3/2)``: what is more (Maclaurin's inequality) is rounding."""
    return min(det * det, q / 3.0 * sqrt(q / 3.0))


def filter_areas(volumes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return ``Delta^2 = Omega^(2/3)`` of volumes, ``(n,)``; here, as cube roots in a kernel are not vectorised."""
    return np.cbrt(volumes) ** 2


# ---------------------------------------------------------------------------------------------- models


class EddyViscosity(Strategy, what="LES model", group="fluxloom.eddy_viscosities"):
    """A model of large-eddy simulation.

    A member is a frozen dataclass whose ``__call__`` is a ``@func`` that returns ``nu_t`` of the velocity gradient
    ``g``, ``g_ij = d u_i / d x_j`` at ``3 i + j``, and the square of the filter's width ``area``, see `filter_areas`.
    """

    if TYPE_CHECKING:  # a member has to have it: that of the family would be a wrong formula

        def __call__(self, g: Any, area: Any) -> Any: ...  # noqa: D102

    def try_formula(self) -> None:
        """Raise `SolverError` where the formula of others gives no viscosity of at least 0."""
        if not is_ours(self) and type(self).loop is EddyViscosity.loop:
            from fluxloom.fv.compressible.formula_trials import try_eddy_viscosity

            try_eddy_viscosity(self, lambda g, area: self(g, area))

    def loop(self, cells: Set, gradient: Dat, area: Dat, nut: Dat) -> Loop:
        """Return the loop that computes ``nut`` (scalar) from ``gradient`` ``(9,)`` and ``area``.

        A model that needs more than these may replace it.

        Raises
        ------
        SolverError
            Where a model of others gives no viscosity of at least 0.
        """
        self.try_formula()
        return Loop(eddy_viscosity, cells, gradient, area, nut, model=self, name=strategy_name(self))


@kernel
def eddy_viscosity(gradient: Read, area: Read, nut: Write, *, model: Const[EddyViscosity]):
    """The eddy viscosity of a model, ``nu_t = (C Delta)^2 D(g)``."""
    nut[0] = model(gradient, area[0])


def _check(model: str, c: object) -> None:
    if not isinstance(c, Real) or not math.isfinite(c) or c < 0:
        raise SolverError(f"{model}: constant is a finite number of at least 0, not {c!r}")


@dataclass(frozen=True)
class Smagorinsky(EddyViscosity, name="smagorinsky"):
    r"""The oldest model: ``D = sqrt(2 S:S)``. It does not vanish at walls.

    J. Smagorinsky, Monthly Weather Review 91, 1963. For isotropic turbulence D. K. Lilly derives
    :math:`C = (2 / (3 C_K))^{3/4} / \pi`, 0.165 for a Kolmogorov constant of 1.6 (a formula, checked); with mean shear
    smaller values are usual, as 0.1 (J. W. Deardorff, J. Fluid Mech. 41, 1970), which is the default.

    Attributes
    ----------
    constant
        The constant ``C``.

    Raises
    ------
    SolverError
        If the constant is negative or not finite.
    """

    constant: float = 0.1

    def __post_init__(self) -> None:
        _check("Smagorinsky", self.constant)

    @func
    def __call__(self, g, area):
        """Return ``nu_t = (C Delta)^2 sqrt(2 S:S)``, ``S = (g + g^T) / 2``."""
        n = zeros(9)
        s = zeros(9)
        size = normalize(g, n)
        strain = symmetric(n, s)
        return self.constant * self.constant * area * size * sqrt(2.0 * strain)


@dataclass(frozen=True)
class Wale(EddyViscosity, name="wale"):
    """Wall-adapting local eddy viscosity, of the squared gradient's symmetric part ``Sd``.

    F. Nicoud, F. Ducros, Flow, Turbulence and Combustion 62, 1999, section 3. Confirmed by computation: the cubic
    law at walls, zero in pure shear, ``(2/3)^(1/4) = 0.90`` times the angular velocity in a solid rotation. The
    constant rests on the literature: the paper finds ``C^2`` to be about 10.6 times that of `Smagorinsky`, so 0.325
    belongs to 0.1, and 0.5 to 0.6 are for isotropic turbulence.

    Attributes
    ----------
    constant
        The constant ``C_w``.

    Raises
    ------
    SolverError
        If the constant is negative or not finite.
    """

    constant: float = 0.325

    def __post_init__(self) -> None:
        _check("Wale", self.constant)

    @func
    def __call__(self, g, area):
        """Return ``nu_t = (C Delta)^2 (Sd:Sd)^(3/2) / ((S:S)^(5/2) + (Sd:Sd)^(5/4))``.

        ``Sd`` is the symmetric part of ``g g`` without its trace. ``S`` and ``Sd`` vanish together for ``g = 0`` alone.
        """
        n = zeros(9)
        s = zeros(9)
        square = zeros(9)
        size = normalize(g, n)
        strain = symmetric(n, s)
        for i in range(3):
            for j in range(3):
                square[3 * i + j] = n[3 * i] * n[j] + n[3 * i + 1] * n[3 + j] + n[3 * i + 2] * n[6 + j]
        mean = (square[0] + square[4] + square[8]) / 3.0
        for i in range(3):
            square[4 * i] -= mean
        a = symmetric(square, s)
        below = strain * strain * sqrt(strain) + a * sqrt(sqrt(a))
        ratio = a * sqrt(a) / below if below > 0.0 else 0.0
        return self.constant * self.constant * area * size * ratio


@dataclass(frozen=True)
class Qr(EddyViscosity, name="qr"):
    r"""The least dissipation that keeps scales below ``Delta`` from growing: ``D = max(r, 0) / q``.

    R. Verstappen, J. Sci. Comput. 49, 2011. With Poincare's inequality on a box of width ``Delta``, whose constant is
    :math:`(\Delta / \pi)^2`, and :math:`\int \omega S \omega = 4 \int r`, :math:`\int \omega \omega = 4 \int q`, the
    enstrophy does not grow for :math:`C^2 \ge 1 / \pi^2`. The default :math:`C^2 = 3 / (2 \pi^2)` has a factor 3/2
    that rests on the literature alone.

    Attributes
    ----------
    constant
        The constant ``C``; 0.39.

    Raises
    ------
    SolverError
        If the constant is negative or not finite.
    """

    constant: float = math.sqrt(1.5) / math.pi

    def __post_init__(self) -> None:
        _check("Qr", self.constant)

    @func
    def __call__(self, g, area):
        """Return ``nu_t = (C Delta)^2 max(r, 0) / q``, ``q = S:S / 2``, ``r = -det S``; zero where ``S = 0``."""
        n = zeros(9)
        s = zeros(9)
        m = zeros(9)
        size = normalize(g, n)
        q = symmetric(n, s)
        cofactors(s, m)
        ratio = 2.0 * max(-determinant(s, m), 0.0) / q if q > NOTHING else 0.0
        return self.constant * self.constant * area * size * ratio


@dataclass(frozen=True)
class Sigma(EddyViscosity, name="sigma"):
    """Of the singular values of the gradient: zero in two dimensions, rotations and axisymmetric strains.

    F. Nicoud, H. Baya Toda, O. Cabrit, S. Bose, J. Lee, Phys. Fluids 23, 085106, 2011. Confirmed by computation: where
    it vanishes, the cubic law at walls, the constant within 2 % (see the module).

    Attributes
    ----------
    constant
        The constant ``C_sigma``.

    Raises
    ------
    SolverError
        If the constant is negative or not finite.
    """

    constant: float = 1.35

    def __post_init__(self) -> None:
        _check("Sigma", self.constant)

    @func
    def __call__(self, g, area):
        """Return ``nu_t = (C Delta)^2 s3 (s1 - s2) (s2 - s3) / s1^2``, ``s1 >= s2 >= s3`` the singular values of ``g``.

        ``s1`` is that of the closed form of the appendix of the paper, with the invariants ``1, Q, R`` of ``n n^T``::

            s1^2 = 1/3 + 2 sqrt(a1) cos(a3),  a1 = 1/9 - Q/3,  a2 = 1/27 - Q/6 + R/2,  a3 = acos(a2 / a1^(3/2)) / 3

        The others follow from ``s2^2 s3^2 = R / s1^2`` and ``s2^2 + s3^2 = (Q - s2^2 s3^2) / s1^2``: near a wall they
        are small, and the closed form would lose half of their digits.
        """
        n = zeros(9)
        m = zeros(9)
        size = normalize(g, n)
        q = cofactors(n, m)
        r = third(determinant(n, m), q)
        a1 = max(1.0 / 9.0 - q / 3.0, 0.0)
        a2 = 1.0 / 27.0 - q / 6.0 + 0.5 * r
        cube = a1 * sqrt(a1)
        angle = acos(min(max(a2 / cube, -1.0), 1.0)) / 3.0 if cube > 0.0 else 0.0
        top = 1.0 / 3.0 + 2.0 * sqrt(a1) * cos(angle)
        product = r / top
        total = max((q - product) / top, 0.0)
        product = min(product, 0.25 * total * total)  # of real numbers: what is more is rounding
        middle = sqrt(0.5 * (total + sqrt(max(total * total - 4.0 * product, 0.0))))
        least = sqrt(product) / middle if q > NOTHING else 0.0
        ratio = least * max(sqrt(top) - middle, 0.0) * max(middle - least, 0.0) / top
        return self.constant * self.constant * area * size * ratio


VARIANTS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"pq": (-2.5, 0.572), "pr": (-1.0, 0.709), "qr": (0.0, 0.762)}
)
"""Exponent ``p`` and constant ``C`` of each variant of `S3pqr`."""


@dataclass(frozen=True)
class S3pqr(EddyViscosity, name="s3pqr"):
    r"""Of two of the invariants ``P, Q, R`` of ``g g^T``, such that ``D`` is a rate and cubic at walls.

    F. X. Trias, D. Folch, A. Gorobets, A. Oliva, Phys. Fluids 27, 065103, 2015. The exponents follow from
    ``P, Q, R = O(1), O(y^2), O(y^6)`` at a wall. The constants are confirmed by computation (see the module). So is
    that :math:`3 D \le (Q/P)^{1/2}`: with the constant 0.458 = :math:`\sqrt{3 \cdot 0.07}` the model dissipates no more
    than Vreman's.

    Attributes
    ----------
    variant
        ``"pq"`` (``p = -5/2``), ``"pr"`` (-1) or ``"qr"`` (0).
    constant
        The constant ``C``; that of the variant by default.
    p, c
        The exponent of ``P``, and the constant that is used.

    Raises
    ------
    SolverError
        If there is no such variant, or the constant is negative or not finite.
    """

    variant: Literal["pq", "pr", "qr"] = "qr"
    constant: float | None = None
    p: float = field(init=False)
    c: float = field(init=False)

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            hint = did_you_mean(str(self.variant), VARIANTS)
            raise SolverError(f"S3pqr: unknown variant {self.variant!r}{hint} (known: {', '.join(VARIANTS)})")
        p, own = VARIANTS[self.variant]
        object.__setattr__(self, "p", p)
        object.__setattr__(self, "c", own if self.constant is None else self.constant)
        _check("S3pqr", self.c)

    @func
    def __call__(self, g, area):
        """Return ``nu_t = (C Delta)^2 P^p Q^-(p+1) R^((p+5/2)/3)``; zero where ``Q`` is.

        The invariants of ``g g^T``: ``P`` its trace, ``Q`` the sum of its principal minors, ``R`` its determinant. Of
        ``n n^T`` the first is one.
        """
        n = zeros(9)
        m = zeros(9)
        size = normalize(g, n)
        q = cofactors(n, m)
        r = third(determinant(n, m), q)
        ratio = pow(q, -(self.p + 1.0)) * pow(r, (self.p + 2.5) / 3.0) if q > NOTHING else 0.0
        return self.c * self.c * area * size * ratio
