"""Formulas of others: what they forget is told before they are compiled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.boundary import SlipWall, boundary_table
from fluxloom.fv.compressible.fluxes import AUSM, HLLC, Rusanov, euler
from fluxloom.fv.compressible.formula_trials import try_flux, try_limiter, try_turbulence, try_viscosity
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.lbm.lattices import LATTICES
from fluxloom.mesh.generate.boxes import box2d
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom.solvers.lattice.checks import check_collision


@dataclass(frozen=True)
class Mean(fl.Flux):
    """The mean of both fluxes: consistent."""

    @fl.func
    def __call__(self, left, right, n, f, gamma, d):
        a, b = fl.zeros(d + 2), fl.zeros(d + 2)
        euler(left, n, a, gamma, d)
        euler(right, n, b, gamma, d)
        for v in range(d + 2):
            f[v] = 0.5 * (a[v] + b[v])


@dataclass(frozen=True)
class Forgets(fl.Flux):
    @fl.func
    def __call__(self, left, right, n, f, gamma, d):
        f[0] = left[0] * left[1]
        for k in range(d):
            f[1 + k] = left[1 + d] * n[k]


@dataclass(frozen=True)
class OnePath(fl.Flux):
    @fl.func
    def __call__(self, left, right, n, f, gamma, d):
        euler(left, n, f, gamma, d)
        if left[1] > 0.0:
            f[0] = fl.sqrt(-1.0 - left[0])


@dataclass(frozen=True)
class Changes(fl.Flux):
    @fl.func
    def __call__(self, left, right, n, f, gamma, d):
        euler(left, n, f, gamma, d)
        left[0] = 5.0


@dataclass(frozen=True)
class Half(fl.Flux):
    @fl.func
    def __call__(self, left, right, n, f, gamma, d):
        euler(left, n, f, gamma, d)
        f[0] *= 0.5


@pytest.mark.parametrize(
    ("flux", "message"),
    [
        (Forgets(), r"flux Forgets: f\[3\] is not written"),
        (OnePath(), r"flux OnePath: f\[0\] is not written \(or not a number\)"),
        (Changes(), "flux Changes: it changes an argument"),
        (Half(), "flux Half: it is not consistent: between two equal states"),
    ],
)
def test_fluxes_that_are_none(flux: fl.Flux, message: str) -> None:
    with pytest.raises(SolverError, match=message):
        CompressibleScheme(flux=flux)


def test_fluxes_that_are_sound() -> None:
    for flux in (Mean(), fl.Roe(), fl.Roe(0.0), HLLC(), AUSM(), Rusanov()):
        try_flux(flux)
    for limiter in (fl.BarthJespersen(), fl.Venkatakrishnan()):
        try_limiter(limiter)
    for law in (fl.Sutherland(), fl.ConstantViscosity(1e-5)):
        try_viscosity(law)
    try_turbulence(fl.SpalartAllmaras())


@dataclass(frozen=True)
class Minmod(fl.Limiter):
    threshold_too: bool = True

    @fl.func
    def __call__(self, change, low, high, eps2):
        most = fl.select(change > 0.0, high, low)
        if self.threshold_too:
            return fl.fabs(most * change) + eps2, change * change + eps2
        return fl.fabs(most), fl.fabs(change)


@dataclass(frozen=True)
class Single(fl.Limiter):
    @fl.func
    def __call__(self, change, low, high, eps2):
        return 1.0


@dataclass(frozen=True)
class Negative(fl.Limiter):
    @fl.func
    def __call__(self, change, low, high, eps2):
        return high - 0.5, 1.0


@pytest.mark.parametrize(
    ("limiter", "message"),
    [
        (Minmod(False), "limiter Minmod: it limits changes whose squares are below eps2.*add eps2 to numerator"),
        (Single(), "limiter Single: it returns 1.0: a numerator and a denominator are wanted"),
        (Negative(), "limiter Negative: .* it returns -0.5 and 1"),
    ],
)
def test_limiters_that_are_none(limiter: fl.Limiter, message: str) -> None:
    CompressibleScheme(limiter=Minmod())
    with pytest.raises(SolverError, match=message):
        CompressibleScheme(limiter=limiter)


@dataclass(frozen=True)
class Wall(fl.BoundaryCondition):
    """What is wrong with it is a number."""

    wrong: int = 0

    def rows(self, faces):
        if self.wrong == 1:
            return faces.centres
        return [1.0, 0.0, 0.0, 0.0, 0.0, 0.0] if self.wrong == 2 else faces.row(1.0, 0.0, 0.0)

    @fl.func
    def __call__(self, par, n, w, b, gamma, d):
        for v in range(d + 2):
            b[v] = w[v]
        if self.wrong == 3:
            par[0] = 0.0


@dataclass(frozen=True)
class Density(fl.BoundaryCondition):
    @fl.func
    def __call__(self, par, n, w, b, gamma, d):
        b[0] = w[0]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (Wall(1), "patch 'xmin': Wall: rows: AttributeError: 'PatchFaces' object has no attribute 'centres'"),
        (Wall(2), r"patch 'xmin': Wall: rows: finite numbers \(3, 6\) are wanted, as faces.row makes them"),
        (Wall(3), "patch 'xmin': Wall: it changes an argument"),
        (Density(), r"patch 'xmin': Density: b\[1\] is not written"),
    ],
)
def test_conditions_that_are_none(condition: fl.BoundaryCondition, message: str) -> None:
    volumes = control_volumes(box2d(3, 3))
    sides = {name: SlipWall() for name in volumes.patches}
    kinds, _, states, _ = boundary_table(volumes, sides | {"xmin": Wall()}, fl.Gas())
    assert len(states) == 2
    assert np.isin(kinds, (0, 1)).all()
    with pytest.raises(SolverError, match=message):
        boundary_table(volumes, sides | {"xmin": condition}, fl.Gas())


# --------------------------------------------------------------------------- eddies and populations


@dataclass(frozen=True)
class Amount(fl.EddyViscosity):
    """As much everywhere."""

    amount: float = 0.01

    @fl.func
    def __call__(self, g, area):
        return self.amount


@dataclass(frozen=True)
class Twice(fl.EddyViscosity):
    @fl.func
    def __call__(self, g, area):
        return area, area


@dataclass(frozen=True)
class Quotient(fl.EddyViscosity):
    @fl.func
    def __call__(self, g, area):
        return area * g[0] * g[0] / (g[1] * g[1])


@dataclass(frozen=True)
class Formless(fl.EddyViscosity):
    @fl.func
    def formula(self, g, area):
        return area


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Amount(-0.01), "at least 0 is wanted, it is -0.01 for g ="),
        (Twice(), r"one number is wanted, it returns \(0.01, 0.01\)"),
        (Quotient(), "test_formula_trials.py:.*ZeroDivisionError|is nan"),
        (Formless(), "Formless: it has no __call__"),
    ],
)
def test_models_of_eddies(model: fl.EddyViscosity, message: str) -> None:
    with pytest.raises(SolverError, match=message):
        model.try_formula()
    Amount().try_formula()


@dataclass(frozen=True)
class Relaxed(fl.Collision):
    """Populations are those of equilibrium, with the momentum or a part of it."""

    keep: float = 1.0

    @fl.func
    def __call__(self, g, excess, momentum, force, lattice, rates):
        for k in range(lattice.q):
            along = 0.0
            for a in range(lattice.dimensions):
                gained = momentum[a]
                if force is not None:
                    gained += force[a]
                along += 3.0 * lattice.velocities[k][a] * gained
            g[k] = lattice.weights[k] * (excess + self.keep * along)


@dataclass(frozen=True)
class Returns(fl.Collision):
    @fl.func
    def __call__(self, g, excess, momentum, force, lattice, rates):
        return g[0], g[1]


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19"])
def test_collisions(lattice: str) -> None:
    check_collision(Relaxed(), LATTICES[lattice])
    with pytest.raises(SolverError, match="Relaxed: it does not keep the momentum"):
        check_collision(Relaxed(0.999), LATTICES[lattice])
    with pytest.raises(SolverError, match="as they are: __call__ has to change g"):
        check_collision(Returns(), LATTICES[lattice])


@dataclass(frozen=True)
class Backwards(fl.SpalartAllmaras):
    @property
    def sigma(self) -> float:
        return -1.0


def test_numbers_of_turbulence_models() -> None:
    with pytest.raises(SolverError, match=r"Backwards: sigma is a number above 0, not -1\.0"):
        try_turbulence(Backwards())
