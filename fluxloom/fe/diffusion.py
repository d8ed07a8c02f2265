r"""What all forms of the operator ``-div(kappa grad u)`` have in common: unknowns, right-hand sides, the diagonal.

Where a value is prescribed, the row is that of the identity, and the column is left out: the operator stays symmetric
and positive definite, and a right-hand side from `load` holds what the column would have given.

Source: T. J. R. Hughes: *The Finite Element Method*, Prentice Hall 1987, chapter 2: prescribed values, and the load of
what is prescribed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.sets import Set
from fluxloom.fe.poisson_kernels import (
    field_load,
    identity_diagonal,
    identity_rows,
    local_diagonal,
    matrix_free_product,
    point_load,
)
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.kernel.frontend import Kernel
from fluxloom.linalg.jacobi import Diagonal
from fluxloom.linalg.operators import Step

__all__ = ["DiffusionForm"]


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
        Diffusivity: a positive number, or positive scalars on the cells.
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

    def _diffusivity(self, kappa: float | Dat) -> Dat | Global:
        if isinstance(kappa, Dat):
            if kappa.set is not self.space.mesh.cells or kappa.shape:
                raise SolverError(f"{self.name}: kappa ({kappa.name!r}) has to be scalars on {self.space.mesh.cells}")
            return kappa
        if not 0.0 < kappa < float("inf"):
            raise SolverError(f"{self.name}: kappa is a positive number or a dat on the cells, not {kappa!r}")
        return self.space.context.scalar(float(kappa), f"{self.name}.kappa", dtype=self.storage)

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
        diagonal = self._dat(self.rows, None, "diagonal")
        self._rows(identity_diagonal, self.free, diagonal)()
        sides = (self.free[space.map], diagonal[space.map])
        space.loop(local_diagonal, space.corners, self.kappa, *sides, name=f"{self.name}.diagonal")()
        return Diagonal(self._dat(self.rows, 1.0 / diagonal.read(), "jacobi"))
