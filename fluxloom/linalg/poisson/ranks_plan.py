"""The plan of a rank that has a part of the right-hand side and of the solution."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator

from fluxloom.comm.base import Comm
from fluxloom.core.errors import DatError, SolverError
from fluxloom.device.base import Device
from fluxloom.dsl.arrays import DeviceArray
from fluxloom.dsl.context import Context
from fluxloom.dsl.primitive import Steps
from fluxloom.linalg.arguments import floating_of
from fluxloom.linalg.poisson.plan import Plan
from fluxloom.linalg.poisson.problem import read_problem
from fluxloom.linalg.poisson.ranks import RankedStages
from fluxloom.linalg.transforms.ranks import Extent

__all__ = ["RankedPlan"]


class RankedPlan(Plan):
    r"""Solves the discrete Poisson equation :math:`(L + \sigma) u = f` on a box divided over ranks. Collective.

    `Plan` makes one where there are several ranks. Arrays are this rank's part, `box`; dats live on a grid of the
    context that is cut alike (``cut=grid.factors``), whose ghosts are left alone. All ranks solve at the same time.

    Parameters
    ----------
    shape
        Unknowns along each axis, of the whole problem.
    spacing, bc, centring, shift, dtype, line, transforms, library
        Of the whole problem, see `Plan`.
    device
        A context with ranks; or a name or a device, with ``comm``.
    comm
        The ranks.
    threads
        Of the processors of this rank; 0: as many as the device has. A context has its own.
    cut
        Boxes along each axis; None: slabs along the axis of the lines.
    decomposition
        ``"slabs"``: the axis of the tridiagonal systems is cut and no other; ranks send two values a system.
        ``"pencils"``: any cut; ranks send all values, once or twice for each cut there and back. ``"auto"``: slabs
        where they are possible.
    gathering, pieces
        How slabs bring their systems together, see `fluxloom.linalg.tridiagonal.ranks.RankedTridiagonal`.

    Attributes
    ----------
    box
        This rank's part: index of the first unknown, and unknowns along each axis.

    Raises
    ------
    SolverError
        See `Plan`; and if slabs are asked for and not possible, or the cut does not fit the ranks.

    Examples
    --------
    >>> context = fl.Context("cpu", comm=fl.world())
    >>> grid = context.grid((64, 64, 64), ghost=1)
    >>> plan = fl.poisson.Plan(grid.global_shape, 1 / 64, "neumann", device=context, cut=grid.factors)
    >>> plan(divergence, out=pressure)
    """

    def __init__(
        self, shape: int | tuple[int, ...], spacing: Any, bc: Any = "periodic", *, centring: Any = "cell",
        shift: float = 0.0, dtype: npt.DTypeLike = "float64", device: str | Device | Context | None = None,
        comm: Comm | None = None, line: Literal["auto"] | int | None = "auto",
        transforms: Literal["auto", "matrix"] = "auto", library: str = "auto", threads: int = 0,
        cut: tuple[int, ...] | None = None, decomposition: Literal["auto", "slabs", "pencils"] = "auto",
        gathering: Literal["auto", "all", "shares"] = "auto", pieces: int = 1,
    ) -> None:  # fmt: skip
        self.dtype = floating_of(dtype, "poisson")
        self.problem = read_problem(shape, spacing, bc, centring, shift, self.dtype)
        self.context = _context(device, comm, threads)
        self.device = self.context.device
        self.problem.check_shift(float(np.finfo(self.dtype).eps))
        self._stages: Any = RankedStages(
            self.context, self.problem, self.dtype, line=line, transforms=transforms, library=library, cut=cut,
            decomposition=decomposition, gathering=gathering, pieces=pieces,
        )  # fmt: skip
        self._ranks: RankedStages = self._stages
        self.way, self.shape = self._ranks.way, self._ranks.shape
        self._steps: OrderedDict[tuple[object, ...], Steps] = OrderedDict()
        self._staged: DeviceArray | None = None

    @property
    def box(self) -> Extent:
        """The part of right-hand side and solution that this rank has."""
        return self._ranks.box

    @property
    def bytes_sent(self) -> int:
        """Bytes that this rank sends to others at each solve."""
        return self._ranks.bytes_sent

    @property
    def removed(self) -> float:
        """Weighted mean that was taken from the last right-hand side of a singular problem; waits, collective."""
        return self._ranks.removed()

    def check(self) -> None:
        """Wait, and raise `SolverError` on every rank where a pivot of the last solve vanished; collective."""
        self._ranks.check()

    def boundary(self) -> npt.NDArray[np.float64]:
        """Return what the boundary data add, in this rank's part."""
        return self.problem.boundary()[self.box.window]

    def volumes(self) -> npt.NDArray[np.float64]:
        """Return the volumes of the unknowns of this rank's part."""
        return self.problem.volumes()[self.box.window]

    @property
    def inverse(self) -> LinearOperator:
        """Is refused: operators of SciPy know nothing of ranks."""
        raise SolverError("poisson: an operator of SciPy has whole vectors, this plan a part of them: call the plan")

    def describe(self) -> str:
        """Return what is done, how it is divided, and what this rank sends."""
        shape = " x ".join(str(direction.n) for direction in self.problem.directions)
        head = f"poisson: {shape} unknowns of {self.dtype}, on {self.device.describe()}"
        lines = [head, self._ranks.describe()]
        if self.problem.singular:
            lines.append("  singular: the weighted mean of f is removed, that of u is zero")
        return "\n".join([*lines, f"  working memory: {self._ranks.nbytes / 2**20:.1f} MiB on this rank"])

    def close(self) -> None:
        """Give back what carries the messages; collective. The plan is not used any more."""
        self._ranks.close()

    def _check_form(self, shape: tuple[int, ...], dtype: np.dtype[Any], what: str) -> None:
        try:
            super()._check_form(shape, dtype, what)
        except DatError as error:
            raise DatError(
                f"{error}; this rank's part begins at {self.box.begin}, the cut is "
                f"{self._ranks.decomposition.layouts[0].factors}: give a grid's with cut=grid.factors"
            ) from None


def _context(device: Any, comm: Comm | None, threads: int) -> Context:
    """Return the context of the ranks."""
    if isinstance(device, Context):
        if comm is not None and comm is not device.comm:
            raise SolverError("poisson: the context has ranks of its own: give a context or comm, not both")
        return device
    return Context("cpu" if device is None else device, comm=comm, threads=threads)
