r"""Poisson's equation with Lagrange elements: products from the matrices of single cells, or from none.

.. math:: -\nabla\cdot(\kappa \nabla u) = f, \quad u = g \text{ on } \Gamma

in its weak form: for all ``i`` with no prescribed value ``sum_j (integral kappa grad phi_i . grad phi_j) u_j =
integral f phi_i``. The sum over cells is not made beforehand, as that of a sparse matrix is, but in each product
``y = sum_e P_e^T K_e P_e x``, where ``P_e x`` are the ``n`` values of a cell: the local matrix approach.
`LocalMatrices` stores ``K_e``, ``n^2`` numbers a cell, and from order 2 on that moves less memory than the rows of a
sparse matrix; `MatrixFree` stores nothing.

Where a value is prescribed, the row is that of the identity, and the column is left out: the operator stays symmetric
and positive definite, and a right-hand side from `load` holds what the column would have given.

Source: I. Z. Reguly, PhD thesis, Pazmany Peter Catholic University 2014, chapters 3 and 4; C. D. Cantwell et al.,
Computers & Fluids 43 (2011) 23-28 for the comparison of local, global and matrix-free products.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.core.layout import Layout
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.sets import Set
from fluxloom.fe.poisson_kernels import (
    field_load,
    identity_diagonal,
    identity_residual,
    identity_rows,
    local_diagonal,
    local_matrix_a,
    local_matrix_b,
    local_matrix_c,
    local_product,
    matrix_free_product,
    point_load,
)
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.kernel.frontend import Kernel
from fluxloom.linalg.jacobi import Diagonal
from fluxloom.linalg.operators import Step
from fluxloom.linalg.vectors import dot

__all__ = ["CellOperator", "Integration", "LocalMatrices", "MatrixFree"]

Integration = Literal["A", "B", "C"]

ASSEMBLY: Mapping[str, Kernel] = MappingProxyType({"A": local_matrix_a, "B": local_matrix_b, "C": local_matrix_c})
"""The kernel of each order of integration."""


class CellOperator:
    """``A`` of Poisson's equation as loops over the cells. The base of `LocalMatrices` and `MatrixFree`.

    It is a `fluxloom.linalg.operators.Operator` whose products take several loops, first over the degrees of freedom,
    then over the cells. Increments from neighbouring cells meet as the schedule of the context says.

    Parameters
    ----------
    space
        The shape functions.
    kappa
        Diffusivity: a positive number, or positive scalars on the cells.
    fixed : (rows,) bool
        Where values are prescribed, for instance ``dofs.on(["wall"])``. By default nowhere: ``A`` is singular then.
    name
        Of its loops and dats.

    Raises
    ------
    SolverError
        If a part does not fit the space.
    """

    def __init__(
        self,
        space: LagrangeSpace,
        kappa: float | Dat = 1.0,
        fixed: npt.ArrayLike | None = None,
        *,
        name: str = "poisson",
    ) -> None:
        self.space, self.name = space, name
        self.kappa = self._diffusivity(kappa)
        mask = np.zeros(space.rows.size, dtype=bool) if fixed is None else np.asarray(fixed)
        if mask.shape != (space.rows.size,) or mask.dtype != np.bool_:
            raise SolverError(
                f"{name}: fixed is a mask of {space.rows.size} booleans, one for each degree of freedom, as dofs.on "
                f"gives it; not {mask.dtype} of shape {mask.shape}"
            )
        self.fixed = mask
        self.free = space.context.dat(space.rows, (~mask).astype(np.float64), f"{name}.free")
        """1 where the value is unknown, 0 where it is prescribed."""

    def _diffusivity(self, kappa: float | Dat) -> Dat | Global:
        if isinstance(kappa, Dat):
            if kappa.set is not self.space.mesh.cells or kappa.shape:
                raise SolverError(f"{self.name}: kappa ({kappa.name!r}) has to be scalars on {self.space.mesh.cells}")
            return kappa
        if not 0.0 < kappa < float("inf"):
            raise SolverError(f"{self.name}: kappa is a positive number or a dat on the cells, not {kappa!r}")
        return self.space.context.scalar(float(kappa), f"{self.name}.kappa")

    @property
    def rows(self) -> Set:
        """The set of vectors: the degrees of freedom."""
        return self.space.rows

    # ----------------------------------------------------------------------------------------- products
    def product(self, x: Dat, y: Dat) -> list[Step]:
        """Return the loops ``y = A x``.

        Raises
        ------
        SolverError
            If the vectors are not scalars on `rows`, or both are the same.
        """
        self._check("product", x, y)
        return [self._rows(identity_rows, x, self.free, y), self._add(x, y, 1.0)]

    def product_dot(self, x: Dat, y: Dat, result: Global) -> list[Step]:
        """Return the loops ``y = A x``, ``result += x . y``; see `product`."""
        loop = Loop(dot, self.rows, x, y, result, name=f"{self.name}.dot", systems=1)
        return [*self.product(x, y), loop]

    def residual(self, x: Dat, b: Dat, r: Dat) -> list[Step]:
        """Return the loops ``r = b - A x``; ``r`` is neither ``x`` nor ``b``. See `product`."""
        self._check("residual", x, r)
        self._check("residual", b, r)
        return [self._rows(identity_residual, x, b, self.free, r), self._add(x, r, -1.0)]

    def _add(self, x: Dat, y: Dat, sign: float) -> Loop:
        """Return the loop over cells ``y += sign A x``, rows and columns of prescribed values left out."""
        raise NotImplementedError

    def _rows(self, kernel: Kernel, *arguments: Dat) -> Loop:
        return Loop(kernel, self.rows, *arguments, name=f"{self.name}.{kernel.name}")

    def _check(self, what: str, *vectors: Dat) -> None:
        for dat in vectors:
            if not isinstance(dat, Dat) or dat.set is not self.rows or dat.shape:
                raise SolverError(f"{self.name}.{what}: scalars on {self.rows} are wanted, not {dat!r}")
        if vectors[0] is vectors[-1]:
            raise SolverError(f"{self.name}.{what}: {vectors[0].name!r} is both read and written: give another dat")

    # ------------------------------------------------------------------------------ right-hand side, diagonal
    def load(self, source: Dat, b: Dat, values: Dat | None = None) -> list[Step]:
        r"""Return the loops that form the right-hand side of ``A u = b``.

        Parameters
        ----------
        source
            ``f``: scalars on `rows`, interpolated in between, or values at the points of the rule, of shape ``(q,)`` on
            the cells (see `LagrangeSpace.places`).
        b
            The result, scalars on `rows`.
        values
            ``g``, scalars on `rows`, where it is prescribed; 0 by default. Elsewhere it may hold any finite numbers.

        Raises
        ------
        SolverError
            If a dat does not fit.
        """
        space, own = self.space, self.free[self.space.map]
        pointwise = source.set is space.mesh.cells and source.shape == (space.rule.size,)
        if not pointwise:
            self._check("load", source, b)
        self._check("load", values if values is not None else self.free, b)
        given = values if values is not None else space.context.dat(self.rows, name=f"{self.name}.zeros")
        start = self._rows(identity_rows, given, self.free, b)
        seen = source if pointwise else source[space.map]
        kernel = point_load if pointwise else field_load
        steps: list[Step] = [
            start, space.loop(kernel, space.corners, seen, own, b[space.map], name=f"{self.name}.load")
        ]  # fmt: skip
        if values is not None:
            taken = space.context.dat(self.rows, self.fixed.astype(np.float64), f"{self.name}.fixed")
            steps.append(self._apply(values, taken, b, -1.0))
        return steps

    def _apply(self, x: Dat, taken: Dat, y: Dat, sign: float) -> Loop:
        """Return the loop over cells ``y += sign free K (taken x)``, without matrices."""
        space = self.space
        through = space.map
        arguments = (x[through], taken[through], self.free[through], y[through])
        name = f"{self.name}.matrix_free"
        return space.loop(matrix_free_product, space.corners, self.kappa, *arguments, sign=sign, name=name)

    def jacobi(self) -> Diagonal:
        """Return Jacobi's preconditioner, the inverse of the diagonal, for the values that ``kappa`` has now."""
        space = self.space
        diagonal = space.context.dat(self.rows, name=f"{self.name}.diagonal")
        self._rows(identity_diagonal, self.free, diagonal)()
        sides = (self.free[space.map], diagonal[space.map])
        space.loop(local_diagonal, space.corners, self.kappa, *sides, name=f"{self.name}.diagonal")()
        return Diagonal(space.context.dat(self.rows, 1.0 / diagonal.read(), f"{self.name}.jacobi"))


class LocalMatrices(CellOperator):
    """``A`` as one dense matrix a cell; see `CellOperator` for its parameters.

    Parameters
    ----------
    integration
        Order of the loops of assembly: ``"A"``, ``"B"`` or ``"C"``, see `fluxloom.fe.poisson_kernels`. The results are
        the same to rounding.
    layout
        Of the matrices; ``SoA()`` puts one entry of all cells together, which devices of work items want.

    Attributes
    ----------
    matrices : Dat
        ``K_ij`` at ``n i + j``, of shape ``(n^2,)`` on the cells. Rows and columns of prescribed values are 0.
    assembly : Loop
        Forms them; it has run once, run it again when ``kappa`` or coordinates have changed.

    Examples
    --------
    >>> space = LagrangeSpace.of(mesh, dofs)
    >>> matrices = LocalMatrices(space, fixed=dofs.on(["xmin", "xmax", "ymin", "ymax"]))
    >>> for step in matrices.load(f, b):
    ...     step()
    >>> ConjugateGradient(matrices, b, u, preconditioner=matrices.jacobi(), stop=Stop(rtol=1e-10)).solve()
    """

    def __init__(
        self,
        space: LagrangeSpace,
        kappa: float | Dat = 1.0,
        fixed: npt.ArrayLike | None = None,
        integration: Integration = "A",
        *,
        layout: Layout | None = None,
        name: str = "poisson",
    ) -> None:
        super().__init__(space, kappa, fixed, name=name)
        if integration not in ASSEMBLY:
            raise SolverError(f"{name}: integration is 'A', 'B' or 'C', not {integration!r}")
        n = space.dofs.element.size
        self.matrices = space.context.dat(space.mesh.cells, name=f"{name}.matrices", shape=(n * n,), layout=layout)
        self.assembly = space.loop(
            ASSEMBLY[integration], space.corners, self.kappa, self.free[space.map], self.matrices,
            name=f"{name}.assembly",
        )  # fmt: skip
        self.assembly()

    def _add(self, x: Dat, y: Dat, sign: float) -> Loop:
        through = self.space.map
        name = f"{self.name}.product"
        return self.space.loop(local_product, self.matrices, x[through], y[through], sign=sign, name=name)


class MatrixFree(CellOperator):
    """``A`` from coordinates alone: gradients at the points, times the metric, times gradients; see `CellOperator`."""

    def _add(self, x: Dat, y: Dat, sign: float) -> Loop:
        return self._apply(x, self.free, y, sign)
