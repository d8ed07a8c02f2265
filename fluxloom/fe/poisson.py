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

import numpy.typing as npt

from fluxloom.core.dtypes import Layout
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.diffusion import DiffusionForm, Diffusivity
from fluxloom.fe.poisson_kernels import (
    identity_residual,
    identity_rows,
    local_matrix_a,
    local_matrix_b,
    local_matrix_c,
    local_product,
)
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.kernel.frontend import Kernel
from fluxloom.linalg.operators import Step
from fluxloom.linalg.vectors import dot

__all__ = ["ASSEMBLY", "CellOperator", "Integration", "LocalMatrices", "MatrixFree", "order_of"]

Integration = Literal["A", "B", "C"]

ASSEMBLY: Mapping[str, Kernel] = MappingProxyType({"A": local_matrix_a, "B": local_matrix_b, "C": local_matrix_c})
"""The kernel of each order of integration."""


def order_of(integration: str, kernels: Mapping[str, Kernel], name: str) -> Kernel:
    """Return the kernel of an order of integration.

    Parameters
    ----------
    integration
        ``"A"``, ``"B"`` or ``"C"``.
    kernels
        The kernel of each.
    name
        Of the operator, used in messages.

    Raises
    ------
    SolverError
        If there is none, naming the operator.
    """
    if integration not in kernels:
        raise SolverError(f"{name}: integration is 'A', 'B' or 'C', not {integration!r}")
    return kernels[integration]


class CellOperator(DiffusionForm):
    """``A`` of Poisson's equation as loops over the cells. The base of `LocalMatrices` and `MatrixFree`.

    It is a `fluxloom.linalg.operators.Operator` whose products take several loops, first over the degrees of freedom,
    then over the cells. Increments from neighbouring cells meet as the schedule of the context says. See
    `fluxloom.fe.diffusion.DiffusionForm` for its parameters.
    """

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


class LocalMatrices(CellOperator):
    """``A`` as one dense matrix a cell; see `CellOperator` for its parameters.

    Parameters
    ----------
    integration
        Order of the loops of assembly: ``"A"``, ``"B"`` or ``"C"``, see `fluxloom.fe.poisson_kernels`. The results are
        the same to rounding.
    layout
        Of the matrices; ``SoA()`` puts one entry of all cells together, which devices of work items want.
    dtype
        Type in which they are stored, by default that of the coordinates.

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
        kappa: Diffusivity = 1.0,
        fixed: npt.ArrayLike | None = None,
        integration: Integration = "A",
        *,
        layout: Layout | None = None,
        dtype: npt.DTypeLike | None = None,
        name: str = "poisson",
    ) -> None:
        super().__init__(space, kappa, fixed, name=name)
        n, kernel = space.dofs.element.size, order_of(integration, ASSEMBLY, name)
        self.matrices = space.context.dat(
            space.mesh.cells, name=f"{name}.matrices", shape=(n * n,), layout=layout,
            dtype=self.storage if dtype is None else dtype,
        )  # fmt: skip
        self.assembly = space.loop(
            kernel, space.corners, self.kappa, self.free[space.map], self.matrices,
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
