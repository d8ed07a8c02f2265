"""A matrix whose rows are divided among several devices of one process, which work on it at the same time.

Each device is a rank: it has some consecutive rows, and the loops, chains and solvers of `fluxloom.linalg` run on it
as on any rank. Values at the cuts travel through the memory of the host: down from a device that has its own, and up to
it.

References
----------
The portable algebraic CFD thesis (TermoFluids), section 3.4: products, vector updates and scalar products of which a
GPU and the cores of its host do a part each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.device.base import Device
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.ragged import RaggedLayout
from fluxloom.dsl.run.chain import Chain
from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.krylov.method import Krylov
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.matrix.reorder import permuted
from fluxloom.linalg.matrix.reorder import reorder as order_of
from fluxloom.linalg.mixed.report import KernelBalance
from fluxloom.linalg.mixed.rows import RowSlice, check_shares, row_bounds, row_slices
from fluxloom.linalg.mixed.team import DeviceRanks, DeviceTeam
from fluxloom.linalg.status import Status

__all__ = ["HybridMatrix", "HybridPart", "HybridSolver", "HybridVector", "OrderedRows", "ordered_rows"]

Result = TypeVar("Result")
Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class HybridPart:
    """What one device has of a matrix.

    Attributes
    ----------
    rank
        Its number among the devices that have rows.
    context
        Where it computes.
    matrix
        Its rows.
    """

    rank: int
    context: Context
    matrix: SparseMatrix


class HybridVector:
    """A vector on the rows of a hybrid matrix; `HybridMatrix.vector` makes it.

    Attributes
    ----------
    parts
        One dat a device.
    """

    def __init__(self, matrix: HybridMatrix, parts: Sequence[Dat], name: str) -> None:
        self.matrix, self.parts, self.name = matrix, tuple(parts), name

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole: the rows, then the systems, if there are several."""
        return (self.matrix.size, *self.parts[0].shape)

    def read(self) -> npt.NDArray[np.float64]:
        """Return a copy of the values, in the order of the rows that were given."""
        found = np.concatenate(self.matrix.run(lambda part: self.parts[part.rank].read()))
        return found if self.matrix.order is None else found[np.argsort(self.matrix.order)]

    def write(self, values: npt.ArrayLike) -> None:
        """Set the values, in the order of the rows that were given.

        Raises
        ------
        SolverError
            If the shape does not fit.
        """
        pieces = self.matrix.pieces(np.broadcast_to(values, self.shape), self.name)
        self.matrix.run(lambda part: self.parts[part.rank].write(pieces[part.rank]))


class HybridSolver:
    """An iterative solver that runs on all devices of a hybrid matrix; `HybridMatrix.solver` makes it.

    Attributes
    ----------
    parts
        The solver of each device.
    """

    def __init__(self, matrix: HybridMatrix, parts: Sequence[Krylov]) -> None:
        self.matrix, self.parts = matrix, tuple(parts)

    def solve(self) -> Status:
        """Solve for the values that ``b`` has now, from those of ``x``; see `Krylov.solve`."""
        return self.matrix.run(lambda part: self.parts[part.rank].solve())[0]


class HybridMatrix:
    """A square matrix on several devices at once.

    Parameters
    ----------
    matrix
        A sparse array or matrix of SciPy.
    devices
        Names such as ``["cuda:0", "cpu:12"]``, device objects, or a `DeviceTeam`, which the caller closes.
    shares
        Part of the rows of each device; equal parts by default. A device with none of the rows takes no part: with
        ``(1, 0)`` the matrix is on the first one, and nothing is sent. `fluxloom.linalg.balance_rows` finds good
        ones.
    granule
        Rows that stay together: the cuts are at multiples.
    layout
        How entries are stored, as in `SparseMatrix.from_csr`; or one layout for each device.
    reorder
        Whether rows are put in the order of Cuthill and McKee first, so that few of them are at the cuts. Vectors keep
        the order of the rows that were given.
    name
        In messages and reports.

    Attributes
    ----------
    size
        Number of rows.
    shares
        Parts that the devices have, as whole granules allow.
    members
        Numbers of the devices that have rows.
    parts
        What each of them has.
    interface
        Rows of each that are not in its interior.
    balance
        How the shares were found, where they were.
    owns
        Whether `close` ends the threads of the devices.

    Raises
    ------
    SolverError
        If the matrix is not square or has no rows, or the shares do not fit the devices or do not sum to 1.
    DeviceUnavailable
        If a device cannot be had.
    """

    def __init__(
        self,
        matrix: Any,
        devices: Sequence[str | Device] | DeviceTeam,
        shares: Sequence[float] | None = None,
        *,
        granule: int = 1,
        layout: RaggedLayout | Sequence[RaggedLayout | None] | None = None,
        reorder: bool = False,
        name: str = "matrix",
    ) -> None:
        ordered = ordered_rows(matrix, reorder)
        own, self.order = ordered.matrix, ordered.order
        self.size, self.name = ordered.size, name
        named = [devices] if isinstance(devices, str) else devices
        count = named.size if isinstance(named, DeviceTeam) else len(named)
        wanted = check_shares(shares if shares is not None else [1.0 / max(1, count)] * count, count)
        layouts = list(layout) if isinstance(layout, Sequence) else [layout] * count
        if len(layouts) != count:
            raise SolverError(f"{len(layouts)} layouts for {count} devices: give one for all, or one each")
        bounds = row_bounds(self.size, wanted, granule)
        self.team = named if isinstance(named, DeviceTeam) else DeviceTeam(named)
        self.owns = not isinstance(named, DeviceTeam)
        self.balance: KernelBalance | None = None
        try:
            self._divide(own, bounds, layouts)
        except BaseException:
            self.close()
            raise

    def _divide(self, own: Any, bounds: Sequence[int], layouts: Sequence[RaggedLayout | None]) -> None:
        """Give each device its rows."""
        counts = np.diff(bounds)
        self.members = tuple(np.flatnonzero(counts).tolist())
        self.shares = tuple((counts / self.size).tolist())
        self.bounds = tuple([bounds[k] for k in self.members] + [self.size])
        self.ranks = DeviceRanks(self.team, self.members)
        slices = row_slices(own, self.bounds)
        self.interface = tuple(piece.interface for piece in slices)
        contexts, chosen = self.ranks.contexts, [layouts[k] for k in self.members]
        made = self.ranks.run(lambda rank: _rank_rows(contexts[rank], slices[rank], chosen[rank], self.name))
        self.parts = tuple(HybridPart(k, self.ranks.contexts[k], one) for k, one in enumerate(made))

    @property
    def names(self) -> tuple[str, ...]:
        """The devices, as they were called."""
        return self.team.names

    def run(self, function: Callable[[HybridPart], Result]) -> list[Result]:
        """Run a function of its part on each device that has rows, at the same time, and return the results.

        What it does is a program of ranks: loops on the sets of the part exchange what they need, and whatever is
        collective has to be called by all.
        """
        return self.ranks.run(lambda rank: function(self.parts[rank]))

    def pieces(self, values: npt.NDArray[Any], name: str = "values") -> list[npt.NDArray[Any]]:
        """Return the values that each device has of some on all rows.

        Raises
        ------
        SolverError
            If there is not one value, or one row of them, for each row.
        """
        if not 1 <= values.ndim <= 2 or values.shape[0] != self.size:
            raise SolverError(f"{name}: values of shape {values.shape} for {self.size} rows: give (rows,) or (rows, n)")
        turned = values if self.order is None else values[self.order]
        return [turned[first:end] for first, end in zip(self.bounds, self.bounds[1:], strict=False)]

    def vector(self, values: npt.ArrayLike | None = None, name: str = "x", systems: int = 0) -> HybridVector:
        """Return a vector on the rows.

        Parameters
        ----------
        values : (rows,) or (rows, systems)
            In the order of the rows that were given; zeros by default.
        systems
            Of vectors that are several at once, where there are no values.
        """
        shape = (self.size, systems) if systems else (self.size,)
        pieces = self.pieces(np.asarray(values, dtype=np.float64) if values is not None else np.zeros(shape), name)
        made = self.run(lambda part: part.context.dat(part.matrix.rows, pieces[part.rank], name, copy=True))
        return HybridVector(self, made, name)

    def product(self, x: HybridVector, y: HybridVector) -> Callable[[], None]:
        """Return what sets ``y = A x`` on all devices at once, values at the cuts exchanged first."""
        self._own(x, y)
        name = f"{self.name}.product"
        chains = self.run(lambda part: Chain([part.matrix.product(x.parts[part.rank], y.parts[part.rank])], name=name))

        def step() -> None:
            self.run(lambda part: chains[part.rank]())

        return step

    def solver(
        self, b: HybridVector, x: HybridVector, method: type[Krylov] = ConjugateGradient, **choices: Any
    ) -> HybridSolver:
        """Return a solver of ``A x = b`` that runs on all devices.

        Iterations and result are those of one device, but for the rounding of sums.

        Parameters
        ----------
        b, x
            Right-hand side and solution.
        method
            `ConjugateGradient`, `BiCGStab` or `GMRES`.
        choices
            ``preconditioner`` (a recipe), ``stop``, ``nullspace``, ``interval`` and ``name``, as for `Krylov`.
        """
        self._own(b, x)
        made = self.run(lambda part: method(part.matrix, b.parts[part.rank], x.parts[part.rank], **choices))
        return HybridSolver(self, made)

    def _own(self, *vectors: HybridVector) -> None:
        for vector in vectors:
            if not isinstance(vector, HybridVector) or vector.matrix is not self:
                raise SolverError(f"{self.name}: {vector!r} is no vector of this matrix: make it by matrix.vector(...)")

    def close(self) -> None:
        """End the threads of the devices; nothing of the matrix is used any more."""
        if self.owns:
            self.team.close()

    def __enter__(self) -> HybridMatrix:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        each = ", ".join(f"{name} {share:.3f}" for name, share in zip(self.names, self.shares, strict=True))
        return f"HybridMatrix({self.name}, {self.size} rows: {each})"


@dataclass(frozen=True, eq=False)
class OrderedRows:
    """A square matrix in compressed rows, in the order in which they are divided.

    Attributes
    ----------
    matrix
        An array of SciPy.
    order
        ``order[new] = old``, or None where rows have the order in which they were given.
    """

    matrix: Any
    order: Index | None = None

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])

    @property
    def bound(self) -> float:
        """Largest sum of magnitudes of a row: no product makes the largest value grow by more."""
        return float(abs(self.matrix).sum(axis=1).max()) if self.size else 0.0


def ordered_rows(matrix: Any, reorder: bool = False) -> OrderedRows:
    """Return a matrix that can be divided; one that is ordered already as it is.

    Raises
    ------
    SolverError
        If it is not sparse, not square, not real or has no rows.
    """
    if isinstance(matrix, OrderedRows):
        return matrix
    if not hasattr(matrix, "tocsr"):
        raise SolverError(f"a hybrid matrix is made from a sparse one of SciPy, not from {type(matrix).__name__}")
    own = matrix.tocsr()
    if own.shape[0] != own.shape[1]:
        raise SolverError(f"a hybrid matrix is square, not {own.shape[0]} x {own.shape[1]}")
    if not own.shape[0]:
        raise SolverError("a matrix without rows cannot be divided among devices")
    if np.iscomplexobj(own.data):
        raise SolverError(f"a hybrid matrix has real values, not {own.data.dtype}")
    if not reorder:
        return OrderedRows(own)
    order = order_of(own, lengths=False)
    return OrderedRows(permuted(own, order), order)


def _rank_rows(context: Context, piece: RowSlice, layout: RaggedLayout | None, name: str) -> SparseMatrix:
    """Return the matrix of one rank. Collective."""
    alone = not context.distributed
    rows = context.set(piece.part.owned if alone else piece.part, f"{name}.rows")
    return SparseMatrix.from_csr(
        context, piece.offsets, piece.indices, piece.values, rows=rows, columns=rows, layout=layout, name=name
    )
