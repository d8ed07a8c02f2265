r"""What all forms of the operator ``-div(kappa grad u)`` have in common: unknowns, right-hand sides, the diagonal.

Where a value is prescribed, the row is that of the identity, and the column is left out: the operator stays symmetric
and positive definite, and a right-hand side from `load` holds what the column would have given.

Source: T. J. R. Hughes: *The Finite Element Method*, Prentice Hall 1987, chapter 2: prescribed values, and the load of
what is prescribed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.sets import Set, Subset
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.cells.quadrature import Quadrature
from fluxloom.fe.cells.sides import Places, Sides, evaluated
from fluxloom.fe.poisson_kernels import (
    field_load,
    identity_diagonal,
    identity_rows,
    local_diagonal,
    matrix_free_product,
    point_load,
)
from fluxloom.fe.spaces import LagrangeSpace, described
from fluxloom.kernel.frontend import Kernel
from fluxloom.linalg.operators import Step
from fluxloom.linalg.precond.jacobi import Diagonal

__all__ = ["DiffusionForm", "Diffusivity", "SideFlux"]

Diffusivity = float | Dat | npt.NDArray[np.number[Any]] | Places
"""A number, scalars on the cells as a dat or an array ``(cells,)``, or a function of the centroids of cells."""

SideFlux = float | Dat | Global | Places
"""A number or scalar, a dat on ``mesh.boundary``, or a function of places."""


class DiffusionForm:
    """``integral kappa grad phi_i . grad phi_j`` on a space, with prescribed values. The base of all its operators.

    Coefficients are stored in the type of the coordinates of the mesh, and loops compute in the widest type among what
    they are given: on a mesh that was bound with ``dtype="float32"`` everything is in single precision if the vectors
    are.

    Parameters
    ----------
    space
        The shape functions.
    kappa
        Diffusivity, positive: a number; scalars on the cells, as a dat, which later assemblies and products read anew,
        or as an array ``(cells,)`` of those that the rank owns; or a function that maps the centroids ``(cells, d)`` of
        cells to such an array. On several ranks collective.
    fixed : (rows,) bool
        Where values are prescribed, for instance ``dofs.on(["wall"])``. By default nowhere: ``A`` is singular then.
    name
        Of its loops and dats.

    Attributes
    ----------
    free : Dat
        1 where the value is unknown, 0 where it is prescribed.

    Raises
    ------
    SolverError
        If a part does not fit the space, and if ``kappa`` is not positive and finite in all cells.
    """

    def __init__(
        self,
        space: LagrangeSpace,
        kappa: Diffusivity = 1.0,
        fixed: npt.ArrayLike | None = None,
        *,
        name: str = "poisson",
    ) -> None:
        self.space, self.name = space, name
        self.storage = space.mesh.x.scalar.numpy
        self.kappa = self._diffusivity(kappa)
        mask = np.zeros(space.rows.size, dtype=bool) if fixed is None else np.asarray(fixed)
        if mask.shape != (space.rows.size,) or mask.dtype != np.bool_:
            raise SolverError(
                f"{name}: fixed is a mask of {space.rows.size} booleans, one for each degree of freedom, as dofs.on "
                f"gives it; not {mask.dtype} of shape {mask.shape}"
            )
        self.fixed = mask
        self.free = self._dat(space.rows, ~mask, "free")

    def _diffusivity(self, kappa: Diffusivity) -> Dat | Global:
        """Check the diffusivity, which may be wrong on one rank alone."""
        context, mesh, name = self.space.context, self.space.mesh, f"{self.name}.kappa"
        if isinstance(kappa, np.ndarray) and not kappa.ndim and kappa.dtype.kind in "fiu":
            kappa = float(kappa)
        if isinstance(kappa, Dat):
            if kappa.set is not mesh.cells or kappa.shape:
                raise SolverError(f"{self.name}: kappa ({kappa.name!r}) has to be scalars on {mesh.cells}")
            values = kappa.read()
            raise_on_all_ranks(context.comm, lambda: self._positive(values))
            return kappa
        if callable(kappa):
            centroids = mesh.centroids.read()
            values = raise_on_all_ranks(context.comm, lambda: self._positive(evaluated(kappa, centroids, name)))
        elif isinstance(kappa, np.ndarray):
            values = raise_on_all_ranks(context.comm, lambda: self._positive(kappa))
        elif isinstance(kappa, Real) and not isinstance(kappa, bool) and 0.0 < float(kappa) < inf:
            return context.scalar(float(kappa), name, dtype=self.storage)
        else:
            raise SolverError(
                f"{self.name}: kappa is a positive number, a dat on the cells, an array with a number for each of "
                f"{mesh.cells.size} cells, or a function of their centroids, not {kappa!r}"
            )
        return self._dat(mesh.cells, values, "kappa")

    def _positive(self, kappa: npt.NDArray[np.number[Any]]) -> npt.NDArray[np.number[Any]]:
        """Return a diffusivity on the cells of this rank, checked."""
        cells = self.space.mesh.cells.size
        if kappa.shape != (cells,) or kappa.dtype.kind not in "fiu":
            raise SolverError(
                f"{self.name}: kappa as an array has a number for each of {cells} cells, shape ({cells},); it has "
                f"{kappa.dtype} of {kappa.shape}"
            )
        good = np.isfinite(kappa) & (kappa > 0)
        if not good.all():
            cell = int(np.argmin(good))
            raise SolverError(
                f"{self.name}: kappa is positive and finite in all cells, and it is {kappa[cell]} in cell {cell} "
                f"({int((~good).sum())} such cells): set it before the operator is made"
            )
        return kappa

    def _dat(self, over: Set, values: npt.ArrayLike | None, what: str) -> Dat:
        """Return scalars of the type of the coordinates."""
        data = None if values is None else np.asarray(values, dtype=self.storage)
        return self.space.context.dat(over, data, f"{self.name}.{what}", dtype=self.storage)

    @property
    def rows(self) -> Set:
        """The set of vectors: the degrees of freedom."""
        return self.space.rows

    def _rows(self, kernel: Kernel, *arguments: Dat) -> Loop:
        return Loop(kernel, self.rows, *arguments, name=f"{self.name}.{kernel.name}")

    def _check(self, what: str, *vectors: Dat) -> None:
        for dat in vectors:
            if not isinstance(dat, Dat) or dat.set is not self.rows or dat.shape:
                raise SolverError(f"{self.name}.{what}: scalars on {self.rows} are wanted, not {described(dat)}")
        if len(vectors) > 1 and vectors[0] is vectors[-1]:
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
            ``values.write(g(dofs.points))`` sets it from a function of places.

        Raises
        ------
        SolverError
            If a dat does not fit.
        """
        space, own = self.space, self.free[self.space.map]
        pointwise = (
            isinstance(source, Dat) and source.set is space.mesh.cells and source.shape == (space.rule.size,)
        )
        if not pointwise:
            self._check("load", source, b)
        self._check("load", values if values is not None else self.free, b)
        given = values if values is not None else self._dat(self.rows, None, "zeros")
        start = self._rows(identity_rows, given, self.free, b)
        seen = source if pointwise else source[space.map]
        kernel = point_load if pointwise else field_load
        steps: list[Step] = [
            start, space.loop(kernel, space.corners, seen, own, b[space.map], name=f"{self.name}.load")
        ]  # fmt: skip
        if values is not None:
            taken = self._dat(self.rows, self.fixed, "fixed")
            steps.append(self._apply(values, taken, b, -1.0))
        return steps

    def flux(
        self, patches: Sequence[str], flux: SideFlux, b: Dat, *, rule: Quadrature | None = None
    ) -> list[Step]:
        r"""Return the loops that add what flows in through patches to a right-hand side, after those of `load`.

        .. math:: \kappa \frac{\partial u}{\partial n} = q \text{ on } \Gamma_q: \quad
           b_i \mathrel{+}= \int_{\Gamma_q} q \, \phi_i \, ds

        with ``n`` outward. Where a value is prescribed, nothing is added. Sides without one and without a flux are
        insulated, ``q = 0``. Collective on several ranks.

        Parameters
        ----------
        patches
            Names of patches of the mesh.
        flux
            ``q``, in the unit of ``kappa u`` over a length: a number; a scalar of the context; scalars on
            ``mesh.boundary``, one for a face; values at the points of the rule, of shape ``(q,)`` there (see
            `fluxloom.fe.cells.sides.Sides.places`); or a function that maps places ``(m, d)`` to ``(m,)`` numbers,
            called once, now. Scalars and dats are read when the loops run.
        b
            Scalars on `rows`; it is added to.
        rule
            On the reference cell of a face, by default Gauss's with ``order + 1`` points a direction.

        Raises
        ------
        MeshError
            For a patch that the mesh does not have.
        SolverError
            If the flux, the vector or the rule does not fit.

        Notes
        -----
        Source: T. J. R. Hughes: *The Finite Element Method*, Prentice Hall 1987, section 2.5.
        """
        self._check("flux", b)
        sides = self.space.sides if rule is None else self.space.sides.with_rule(rule)
        faces = sides.on(patches)
        given = self._side_flux(sides, faces, flux)
        return [sides.load(faces, given, self.free[sides.map], b[sides.map], f"{self.name}.flux")]

    def _side_flux(self, sides: Sides, faces: Subset, flux: SideFlux) -> Dat | Global:
        """Return the flux through faces as what a loop reads."""
        boundary, name, size = self.space.mesh.boundary, f"{self.name}.flux", sides.rule.size
        if isinstance(flux, Dat) and flux.set is boundary and flux.shape in ((), (size,)):
            return flux
        if isinstance(flux, Global) and flux.shape == ():
            return flux
        if isinstance(flux, Real) and not isinstance(flux, bool) and isfinite(flux):
            return self.space.context.scalar(float(flux), name, dtype=self.storage)
        if callable(flux):
            return sides.values(faces, flux, self.storage, name)
        raise SolverError(
            f"{name}: a finite number, a function of places, or a dat of shape () or ({size},) on {boundary} is "
            f"wanted, not {described(flux)}"
        )

    def _apply(self, x: Dat, taken: Dat, y: Dat, sign: float) -> Loop:
        """Return the loop over cells ``y += sign free K (taken x)``, without matrices."""
        space = self.space
        through = space.map
        arguments = (x[through], taken[through], self.free[through], y[through])
        name = f"{self.name}.matrix_free"
        return space.loop(matrix_free_product, space.corners, self.kappa, *arguments, sign=sign, name=name)

    def jacobi(self) -> Diagonal:
        """Return Jacobi's preconditioner ``D = 1 / diag(A)`` for the values that ``kappa`` has now."""
        space = self.space
        diagonal = self._dat(self.rows, None, "diagonal")
        self._rows(identity_diagonal, self.free, diagonal)()
        sides = (self.free[space.map], diagonal[space.map])
        space.loop(local_diagonal, space.corners, self.kappa, *sides, name=f"{self.name}.diagonal")()
        return Diagonal(self._dat(self.rows, 1.0 / diagonal.read(), "jacobi"))
