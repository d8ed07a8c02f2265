"""Poisson's equation with finite elements: order, agreement of formats, and what their products move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.cells.quadrature import gauss
from fluxloom.fe.global_matrix import FORMATS, GlobalMatrix
from fluxloom.fe.poisson import Integration, LocalMatrices, MatrixFree
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.operators import Operator, steps_of
from fluxloom.linalg.status import Stop
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.mesh.ranks.bind import bind
from fluxloom_lab.studies.fem_traffic import PUBLISHED, accessed_bytes, modelled_ratio
from fluxloom_lab.verify.base import Check, FullOptions, Tell

__all__ = ["FAMILIES", "Family", "FiniteElementVerification", "differences", "solution_error", "space_on", "traffic"]

Array = npt.NDArray[np.float64]

_THESIS = "Reguly 2014, table 3.1"
_OTHERS: tuple[Integration, ...] = ("B", "C")
_ORDER = "interpolation: h^(p + 1)"


@dataclass(frozen=True)
class Family:
    """Meshes of one shape for one order: intervals a side, of which each has twice those of the one before."""

    shape: str
    order: int
    sizes: tuple[int, int]
    full: bool = False

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.shape}, p = {self.order}"

    def mesh(self, n: int) -> MeshData:
        """Return the unit square or cube with intervals of unequal length."""
        axes = (_uneven,) * 3
        if self.shape in ("quad", "triangle"):
            return box2d(n, n, kind=self.shape, axes=axes[:2])
        return box3d(n, n, n, kind=self.shape, axes=axes)


def _uneven(t: Array) -> Array:
    return t + 0.08 * np.sin(2.0 * np.pi * t)


FAMILIES = (
    Family("quad", 1, (16, 32)), Family("quad", 2, (8, 16)), Family("quad", 3, (6, 12)), Family("quad", 4, (4, 8)),
    Family("triangle", 1, (16, 32)), Family("tetra", 1, (8, 16)), Family("hexahedron", 1, (8, 16)),
    Family("triangle", 2, (8, 16), full=True), Family("tetra", 2, (4, 8), full=True),
    Family("hexahedron", 2, (4, 8), full=True),
)  # fmt: skip
"""What is verified; those that are ``full`` with ``--full`` alone."""


class FiniteElementVerification:
    """Orders in L2, the same product from all formats, and ratios of traffic.

    ``--full``: order 2 of all shapes, and products of orders 3 and 4, whose loops take minutes to compile.
    """

    title = "fem: order p + 1 of Lagrange elements, products of all formats, what they move"
    options = FullOptions

    def run(self, options: FullOptions, tell: Tell) -> Iterator[Check]:
        """Yield the checks as they are done."""
        context = options.context()
        for family in FAMILIES:
            if family.full and not options.full:
                continue
            tell(f"{family.name}: {family.sizes[0]} and {family.sizes[1]} intervals a side")
            first, second = (solution_error(space_on(context, family, n)) for n in family.sizes)
            tell(f"{family.name}: errors in L2 {first:.4g} and {second:.4g}")
            yield Check(f"{family.name}: order in L2", log2(first / second), family.order + 1.0, 0.1, _ORDER)
            if family.order > 2 and not options.full:
                continue
            for form, off in differences(space_on(context, family, 3)).items():
                yield Check(
                    f"{family.name}: product of {form}, off that of local matrices A", off, 0.0, 1e-12, "identity"
                )
        for order in (1, 2, 3, 4) if options.full else (1, 2):
            yield from _traffic(context, order, tell)


def space_on(context: Context, family: Family, n: int) -> LagrangeSpace:
    """Return the space of a family on one of its meshes."""
    return LagrangeSpace.on(bind(family.mesh(n), context), family.order)


def solution_error(space: LagrangeSpace) -> float:
    """Return the error in L2 of ``-laplace u = f``, ``u = prod sin pi x``, 0 on the boundary."""
    context, dofs = space.context, space.dofs

    def exact(x: Array) -> Array:
        return np.sin(np.pi * x).prod(axis=1)

    matrix = LocalMatrices(space, fixed=dofs.on(list(dofs.patches)))
    u, b = (context.dat(space.rows, name=name) for name in ("u", "b"))
    places = space.places()
    d = places.shape[-1]
    source = d * np.pi**2 * exact(places.reshape(-1, d)).reshape(places.shape[:2])
    for step in matrix.load(context.dat(space.mesh.cells, source, "f", shape=source.shape[1:]), b):
        step()
    solver = ConjugateGradient(matrix, b, u, preconditioner=matrix.jacobi(), stop=Stop(rtol=1e-11))
    solver.solve().require("Poisson's equation")
    element = dofs.element
    return space.with_rule(gauss(element.shape, element.order + 3)).error(u, exact)


def differences(space: LagrangeSpace) -> dict[str, float]:
    """Return how far products of all forms are from that of local matrices, relative to its largest value.

    The diffusivity differs from cell to cell, values are prescribed on a side, the vector is random.
    """
    context, dofs, rng = space.context, space.dofs, np.random.default_rng(7)
    kappa = context.dat(space.mesh.cells, rng.uniform(0.5, 2.0, space.mesh.cells.size), "kappa")
    fixed = dofs.on(list(dofs.patches)[:1])
    x, y = context.dat(space.rows, rng.normal(size=space.rows.size), "x"), context.dat(space.rows, name="y")

    def product(operator: Operator) -> Array:
        for step in steps_of(operator.product(x, y)):
            step()
        return y.read().copy()

    wanted = product(LocalMatrices(space, kappa, fixed))
    found = {f"local matrices {letter}": product(LocalMatrices(space, kappa, fixed, letter)) for letter in _OTHERS}
    found["no matrices"] = product(MatrixFree(space, kappa, fixed))
    for form in FORMATS:
        found[form] = product(GlobalMatrix(space, kappa, fixed, format=form).matrix)
    return {name: float(np.abs(values - wanted).max() / np.abs(wanted).max()) for name, values in found.items()}


def traffic(context: Context, order: int, n: int) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Return bytes of a product with global matrices over those with local ones, on ``n x n`` quads.

    Returns
    -------
    dict
        By format and type: the words of the study, the accesses of the loops, and their useful bytes (each value
        once; of the type of the loops, double precision).
    """
    space = LagrangeSpace.on(bind(box2d(n, n), context), order)
    x, y = context.dat(space.rows, name="x"), context.dat(space.rows, name="y")
    local = _loops(LocalMatrices(space), x, y)[-1:]
    found: dict[tuple[str, str], tuple[float, float, float]] = {}
    for form in ("csr", "ell"):
        own = _loops(GlobalMatrix(space, format=form).matrix, x, y)
        useful = sum(loop.useful_bytes for loop in own) / sum(loop.useful_bytes for loop in local)
        for width, precision in ((4, "float32"), (8, "float64")):
            accessed = accessed_bytes(own, width) / accessed_bytes(local, width)
            found[form, precision] = modelled_ratio(order, form, width), accessed, useful
    return found


def _loops(operator: Operator, x: Dat, y: Dat) -> list[Loop]:
    return [step for step in steps_of(operator.product(x, y)) if isinstance(step, Loop)]


def _traffic(context: Context, order: int, tell: Tell) -> Iterator[Check]:
    """Check words and accesses against the study, and tell the useful bytes."""
    n = 96 // order
    for (form, precision), (words, accessed, useful) in traffic(context, order, n).items():
        reference = PUBLISHED[form, precision][order - 1]
        what = f"traffic, {form} over local, {precision}, p = {order}"
        tell(
            f"{what}: published {reference:.2f}, words {words:.3f}, accesses on {n} x {n} cells {accessed:.3f}"
            + (f", useful bytes {useful:.3f}" if precision == "float64" else "")
        )
        yield Check(f"{what}: words", words, reference, 0.007, _THESIS)
        yield Check(f"{what}: accesses of the loops", accessed, reference, 0.06, _THESIS)
