"""A sparse matrix: a ragged map from rows to columns, and values on its entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError, LoopError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import Argument, RaggedMap
from fluxloom.dsl.declare.ragged import RaggedLayout
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import Kernel
from fluxloom.linalg.matrix.products import spmm, spmm_dot, spmm_residual, spmv, spmv_dot, spmv_residual

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["SparseMatrix"]


class SparseMatrix:
    """A ragged map from rows to columns with one value an entry.

    Nothing but the two: a loop that fills, scales or reads the matrix takes ``matrix.values`` through
    ``matrix.pattern.to_entries``, a map of its own to ``matrix.pattern.entries``, or row by row through
    ``matrix.pattern.entry_row``.

    Parameters
    ----------
    pattern
        Rows to columns; its layout (`CSR`, `ELL`, `SlicedELL`) is that of the matrix.
    values
        One number on each entry.

    Raises
    ------
    DatError
        If the values are not on the entries of the pattern, or not one number each.
    """

    def __init__(self, pattern: RaggedMap, values: Dat) -> None:
        if values.set is not pattern.entries:
            raise DatError(f"matrix {pattern.name!r}: values {values.name!r} are on {values.set}, not on its entries")
        if values.dim != 1:
            raise DatError(f"matrix {pattern.name!r}: values {values.name!r} have shape {values.shape}; give scalars")
        self.pattern = pattern
        self.values = values

    @classmethod
    def from_csr(
        cls,
        context: Runtime,
        offsets: npt.ArrayLike,
        indices: npt.ArrayLike,
        values: npt.ArrayLike,
        *,
        rows: Set | None = None,
        columns: Set | int | None = None,
        layout: RaggedLayout | None = None,
        dtype: npt.DTypeLike | None = None,
        name: str = "matrix",
    ) -> SparseMatrix:
        """Make a matrix from compressed rows.

        Parameters
        ----------
        context
            Where it lives.
        offsets : (n + 1,)
            Start of each row; the last is the number of entries.
        indices, values : (entries,)
            Column and value of each entry.
        rows
            The set of the rows; a new one by default.
        columns
            The set of the columns, or their number. By default, and for as many columns as rows, the set of the
            rows: then the product of a vector can be multiplied again.
        layout
            How entries are stored: `CSR`, `ELL` or `SlicedELL`.
        dtype
            Type in which values are stored.
        name
            Used in messages and reports.

        Raises
        ------
        DatError
            If the arrays do not fit each other or the sets, or the values are not real.
        """
        starts = np.asarray(offsets)
        row_set = rows if rows is not None else Set(context, max(0, starts.size - 1), f"{name}.rows")
        if isinstance(columns, Set):
            column_set = columns
        elif columns is None or columns == row_set.size:
            column_set = row_set
        else:
            column_set = Set(context, columns, f"{name}.columns")
        pattern = RaggedMap(row_set, column_set, starts, indices, name, layout)
        return cls(pattern, Dat(pattern.entries, values, name=f"{name}.values", dtype=dtype))

    @classmethod
    def from_scipy(
        cls,
        context: Runtime,
        matrix: Any,
        *,
        rows: Set | None = None,
        columns: Set | None = None,
        layout: RaggedLayout | None = None,
        dtype: npt.DTypeLike | None = None,
        name: str = "matrix",
    ) -> SparseMatrix:
        """Make a matrix from a SciPy sparse array or matrix of any format, or from the rows of a dense one.

        Of a dense matrix what is not zero is stored. See `from_csr`.

        Raises
        ------
        DatError
            If it is no matrix, the sets have other sizes than it, or its values are not real.
        """
        if not hasattr(matrix, "tocsr"):
            matrix = _compressed(matrix, name)
        compressed = matrix.tocsr()
        height, width = compressed.shape
        for given, size, what in ((rows, height, "rows"), (columns, width, "columns")):
            if given is not None and given.size != size:
                raise DatError(f"matrix {name!r} has {size} {what}, but {given} was given for them")
        return cls.from_csr(
            context, compressed.indptr, compressed.indices, compressed.data, rows=rows,
            columns=columns if columns is not None else width, layout=layout, dtype=dtype, name=name,
        )  # fmt: skip

    # ---------------------------------------------------------------------------------------- what it is
    @property
    def rows(self) -> Set:
        """The set that ``y`` of a product lives on."""
        return self.pattern.source

    @property
    def columns(self) -> Set:
        """The set that ``x`` of a product lives on."""
        return self.pattern.target

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows.size, self.columns.size

    @property
    def entries(self) -> int:
        """Number of stored entries, padding not counted."""
        return self.pattern.entries.size

    @property
    def layout(self) -> RaggedLayout:
        """How entries are stored."""
        return self.pattern.layout

    @property
    def padding(self) -> float:
        """Places of storage for each entry: 1 without padding."""
        return self.pattern.entries.storage_size / self.entries if self.entries else 1.0

    # -------------------------------------------------------------------------------------- what it does
    def product(self, x: Dat, y: Dat, schedule: Schedule | None = None) -> Loop:
        """Return the loop ``y = A x``, for one vector or for several at once.

        Parameters
        ----------
        x
            Scalars on `columns`, or one component a vector.
        y
            Values on `rows` of the same shape; not ``x`` itself.
        schedule
            How to run it; by default the cost model and the tuning file decide.

        Raises
        ------
        LoopError
            If a vector does not fit, or both are the same.
        """
        return self.row_loop((spmv, spmm), x, y, name=self._checked("product", x, y), schedule=schedule)

    def product_dot(self, x: Dat, y: Dat, result: Global, schedule: Schedule | None = None) -> Loop:
        """Return the loop ``y = A x``, ``result += x . y``, of a square matrix; see `product`."""
        name = self._checked("product_dot", x, y, square=True)
        return self.row_loop((spmv_dot, spmm_dot), x, x, y, result, name=name, schedule=schedule)

    def residual(self, x: Dat, b: Dat, r: Dat, schedule: Schedule | None = None) -> Loop:
        """Return the loop ``r = b - A x``; ``r`` is neither ``x`` nor ``b``. See `product`."""
        name = self._checked("residual", x, r)
        return self.row_loop((spmv_residual, spmm_residual), x, b, r, name=name, schedule=schedule)

    def row_loop(
        self, kernels: tuple[Kernel, Kernel], x: Dat, *arguments: Dat | Argument | Global | None, name: str,
        schedule: Schedule | None = None, **constants: Any,
    ) -> Loop:  # fmt: skip
        """Return a loop over the rows, whose first arguments are their entries and what these meet of a vector.

        Parameters
        ----------
        kernels
            For one vector, and for several at once, whose number is its constant ``systems``.
        x
            The vector, on `columns`.
        *arguments, name, schedule, **constants
            The others, as of `Loop`.
        """
        if x.shape:
            constants["systems"] = x.shape[0]
        row = self.values[self.pattern.to_entries], x[self.pattern]
        return Loop(kernels[bool(x.shape)], self.rows, *row, *arguments, name=name, schedule=schedule, **constants)

    def _checked(self, what: str, x: Dat, y: Dat, *, square: bool = False) -> str:
        """Return the name of a loop whose vectors fit."""
        name = f"{self.pattern.name}.{what}"
        if x is y:
            raise LoopError(f"{name}: x and y are both {x.name!r}; rows would read what others have written already")
        if square and self.rows is not self.columns:
            raise LoopError(f"{name}: the matrix has {self.rows} and {self.columns}: a square one is wanted")
        if x.shape != y.shape or len(x.shape) > 1:
            raise LoopError(f"{name}: {x.name!r} has shape {x.shape} and {y.name!r} {y.shape}: give both () or (n,)")
        return name

    def owned(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the compressed rows that this rank owns, offsets, local columns and values: there may be others."""
        offsets = self.pattern.offsets[: self.rows.size + 1]
        end = int(offsets[-1])
        return offsets, self.pattern.indices[:end], self.values.read()[:end]

    def to_scipy(self) -> csr_array:
        """Return the matrix as a SciPy array in compressed rows, entries in their logical order."""
        from scipy.sparse import csr_array

        return csr_array((self.values.read(), self.pattern.indices.copy(), self.pattern.offsets.copy()), self.shape)

    def __repr__(self) -> str:
        return f"SparseMatrix({self.pattern.name}, {self.shape}, {self.entries} entries, {self.layout})"


def _compressed(given: Any, name: str) -> csr_array:
    """Return a dense matrix in compressed rows."""
    from scipy.sparse import csr_array

    if isinstance(given, np.ma.MaskedArray):
        raise DatError(f"matrix {name!r} is a masked array: fill the masked values, matrix.filled(0.0)")
    try:
        dense = np.asarray(given)
    except ValueError:
        dense = np.zeros(0)
    if dense.ndim != 2 or dense.dtype.kind not in "fiub":
        raise DatError(
            f"matrix {name!r}: a SciPy sparse matrix, or real numbers of shape (rows, columns), are wanted, not "
            f"{type(given).__name__}" + (f" of {dense.dtype} and shape {dense.shape}" if dense.size else "")
        )
    return csr_array(dense)
