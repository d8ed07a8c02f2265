r"""Poisson's equation with Lagrange elements as one sparse matrix, assembled on the device.

.. math:: A_{IJ} = \sum_e \sum_{ij} [I = I_e(i), J = I_e(j)] \int_e \kappa \nabla\phi_i\cdot\nabla\phi_j

A format is where the entries of the matrix lie, and a map from cells to them with ``n^2`` legs that is built once. In
`CSR`, `ELL` and sliced ELL an entry is shared by all cells that have the pair, assembly adds to it, and how additions
of neighbours are kept apart is the `Schedule` of a loop. In the lazy form each contribution has an entry of its own,
rows are as long as cells meet there times ``n``, and assembly writes.

Source: I. Z. Reguly, PhD thesis, Pazmany Peter Catholic University 2014, chapter 4: CSR, ELLPACK and lazy ELLPACK.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import PlanError, SolverError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.local_sets import local_set
from fluxloom.dsl.declare.ragged import CSR, ELL, RaggedLayout
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.cells.cell_entries import CellEntries, own_entries, shared_entries
from fluxloom.fe.cells.shared_rows import own_rows, receiver
from fluxloom.fe.diffusion import DiffusionForm, Diffusivity
from fluxloom.fe.global_kernels import add_matrix_a, add_matrix_b, add_matrix_c, clear_entry, identity_entry
from fluxloom.fe.poisson import ASSEMBLY, Integration, order_of
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.kernel.frontend import Kernel
from fluxloom.linalg.matrix.matrix import SparseMatrix

__all__ = ["FORMATS", "GlobalFormat", "GlobalMatrix"]

GlobalFormat = Literal["csr", "ell", "sliced", "lazy"]

FORMATS: tuple[GlobalFormat, ...] = ("csr", "ell", "sliced", "lazy")
"""What `GlobalMatrix` knows."""

ADDITION: Mapping[str, Kernel] = MappingProxyType({"A": add_matrix_a, "B": add_matrix_b, "C": add_matrix_c})
"""The kernel of each order of integration that adds to shared entries."""


class GlobalMatrix(DiffusionForm):
    """``A`` of Poisson's equation as a sparse matrix; see `fluxloom.fe.diffusion.DiffusionForm` for its load.

    Rows and columns of prescribed values are those of the identity. Solvers, preconditioners and tuning take `matrix`.
    On several ranks each forms the rows of the degrees of freedom that it owns, see `fluxloom.fe.cells.shared_rows`.

    Parameters
    ----------
    space
        The shape functions.
    kappa, fixed, name
        See `DiffusionForm`.
    integration
        Order of the loops of assembly: ``"A"``, ``"B"`` or ``"C"``, see `fluxloom.fe.poisson_kernels`. The results are
        the same to rounding.
    format
        ``"csr"``: rows one after the other. ``"ell"``: all rows as long as the longest, stored by columns.
        ``"sliced"``: the same in slices, of as many rows as the device handles side by side. ``"lazy"``: ELL with an
        entry for each contribution of a cell; columns occur several times in a row. Products, `Jacobi` and `SSOR` take
        it as it is, with longer rows; `SmoothedAggregation` adds up what belongs together in its set-up, and has
        lazy rows on the finest level alone.
    schedule
        How additions to shared entries are kept apart; by default the cost model and the tuning file decide. Entries
        of ``"csr"`` allow every strategy, those of ``"ell"`` and ``"sliced"``, which are not stored in the order of
        rows, all but ``gather`` and ``two_pass``; on a CPU ``two_pass``, and ``gather`` with ``block=1``, take up to 16
        degrees of freedom a cell. A cell is computed once for each tile that it meets by ``gather``, and for each of
        its ``n^2`` entries where that goes entry by entry: ``block=1`` on a CPU, ``stage=False`` on a GPU. In
        ``"lazy"`` nothing meets, and there is no strategy.
    dtype
        Type in which entries are stored, by default that of the coordinates. Arithmetic is that of loops: in double
        precision if coordinates, in products if vectors are.

    Attributes
    ----------
    matrix : SparseMatrix
        The matrix, assembled.
    assembly : Chain
        What `assemble` runs.

    Raises
    ------
    SolverError
        If a part does not fit the space, and for an unknown format.
    PlanError
        If the schedule asks for a strategy that is not possible in the format.
    DatError
        If there are more entries than their numbers can tell apart.

    Examples
    --------
    >>> space = LagrangeSpace.of(mesh, dofs)
    >>> poisson = GlobalMatrix(space, fixed=dofs.on(["xmin", "xmax", "ymin", "ymax"]))
    >>> for step in poisson.load(f, b):
    ...     step()
    >>> ConjugateGradient(poisson.matrix, b, u, preconditioner=SSOR(), stop=Stop(rtol=1e-10)).solve()
    """

    def __init__(
        self,
        space: LagrangeSpace,
        kappa: Diffusivity = 1.0,
        fixed: npt.ArrayLike | None = None,
        integration: Integration = "A",
        format: GlobalFormat = "csr",
        *,
        schedule: Schedule | None = None,
        dtype: npt.DTypeLike | None = None,
        name: str = "poisson",
    ) -> None:
        super().__init__(space, kappa, fixed, name=name)
        context = space.context
        kernel = order_of(integration, ASSEMBLY if format == "lazy" else ADDITION, name)
        entries = self._entries(format, schedule)
        own = own_rows(entries, space.rows.size)
        pattern = context.ragged(
            space.rows, space.rows, own.offsets, own.indices, name, _layout(format, context)
        )  # fmt: skip
        values = context.dat(pattern.entries, name=f"{name}.values", dtype=self.storage if dtype is None else dtype)
        self.format: GlobalFormat = format
        self.matrix = SparseMatrix(pattern, values)
        self.assembly = Chain(self._assembly(kernel, entries, schedule), name=f"{name}.assembly")
        self.assemble()

    def assemble(self) -> None:
        """Form the entries anew, for the values that ``kappa`` and the coordinates have now.

        One call of a chain on the device. Preconditioners that hold numbers of the matrix have to be built again.
        """
        self.assembly()

    def _entries(self, format: str, schedule: Schedule | None) -> CellEntries:
        """Return where cells find their entries."""
        cells, rows = self.space.map.table, self.rows.stored
        if format not in FORMATS:
            known = ", ".join(FORMATS)
            hint = did_you_mean(str(format), FORMATS)
            raise SolverError(f"{self.name}: unknown format {format!r}{hint} (known: {known})")
        if format != "lazy":
            return shared_entries(cells, rows)
        if schedule is not None and schedule.strategy is not None:
            raise PlanError(
                f"{self.name}.assembly: strategy {schedule.strategy!r} is not possible: each contribution has an entry "
                "of its own in the format 'lazy', nothing meets; leave strategy out"
            )
        return own_entries(cells, rows)

    def _assembly(self, kernel: Kernel, entries: CellEntries, schedule: Schedule | None) -> list[Loop]:
        """Return the loops that fill the matrix: cells, then the rows of prescribed values."""
        space, values = self.space, self.matrix.values
        sums, taken = receiver(values, entries.indices.size, self.name)
        to_entries = space.context.map(space.mesh.cells, sums.set, entries.table, f"{self.name}.cell_entries")
        sides = (self.kappa, self.free[space.map], to_entries.argument(sums))
        add = space.loop(kernel, space.corners, *sides, schedule=schedule, name=f"{self.name}.assembly")
        loops = [add] if self.format == "lazy" else [Loop(clear_entry, sums.set, sums, name=f"{self.name}.clear"), add]
        loops += taken
        rows = np.flatnonzero(self.fixed)
        if rows.size or space.context.distributed:
            prescribed = local_set(space.context, rows.size, f"{self.name}.prescribed")
            diagonal = space.context.map(prescribed, values.set, entries.diagonal[rows], f"{self.name}.diagonal")
            loops.append(Loop(identity_entry, prescribed, values[diagonal[0]], name=f"{self.name}.identity"))
        return loops

    def __repr__(self) -> str:
        return f"GlobalMatrix({self.name}, {self.format}, {self.matrix.shape}, {self.matrix.entries} entries)"


def _layout(format: GlobalFormat, context: Context) -> RaggedLayout:
    """Return how entries of a format are stored."""
    if format == "sliced":
        return context.row_layout()
    return CSR() if format == "csr" else ELL()
