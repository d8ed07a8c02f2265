"""A fast Poisson solver as preconditioner: of problems with coefficients that vary around a constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fluxloom.core.access import Const, Read, Write
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.linalg.direct.calls import HostStep
from fluxloom.linalg.direct.poisson.plan import Plan
from fluxloom.linalg.operators import Operator, Preconditioner, Step

__all__ = ["FastPoisson"]


@kernel
def weighted(r: Read, w: Read, y: Write, *, factor: float, systems: Const[int]):
    """``y_i = factor w_i r_i``; ``w`` is ``1 / V_i`` of rows that are integrated, else 1."""
    for k in range(systems):
        y[k] = factor * w[0] * r[k]


class _Applied:
    """``z = factor (L + shift)^{-1} W^{-1} r``."""

    def __init__(self, plan: Plan, inverse: Dat, factor: float) -> None:
        self._plan, self._inverse, self._factor = plan, inverse, factor

    @property
    def diagonal(self) -> Dat | None:
        """None: it is no diagonal."""
        return None

    def apply(self, r: Dat, z: Dat) -> Sequence[Step]:
        """Return the steps that form ``z`` of ``r``."""
        if r.shape:
            raise SolverError(f"FastPoisson: {r.name!r} has shape {r.shape}: one system at a time, dats of shape ()")
        scaled = Dat(r.set, name="fast poisson", dtype=r.scalar.numpy)
        loop = Loop(weighted, r.set, r, self._inverse, scaled, factor=self._factor, systems=1, name="fast poisson")
        return [loop, HostStep(r.context, lambda: self._plan(scaled, z), "fast poisson")]


@dataclass(frozen=True, eq=False)
class FastPoisson(Preconditioner):
    r"""The inverse of a discrete Laplacian, as preconditioner of a matrix near it.

    .. math:: B = \sigma (L + s)^{-1} W^{-1}

    with the volumes ``W``: symmetric, and the inverse of :math:`W (L + s) / \sigma`. For a matrix of
    :math:`-\nabla \cdot k \nabla` with :math:`k_0 \le k \le k_1`, integrated over the same cells, the eigenvalues of
    ``B A`` are between :math:`-\sigma k_0` and :math:`-\sigma k_1`, whatever the number of cells (P. Concus,
    G. H. Golub: *Use of fast direct methods for the efficient numerical solution of nonseparable elliptic equations*,
    SIAM J. Numer. Anal. 10 (1973), section 3).

    Attributes
    ----------
    plan
        Of the Laplacian, on the device of the matrix, without boundary data.
    factor
        ``sigma``; -1 for matrices of :math:`-\nabla \cdot k \nabla`, which are positive definite.
    integrated
        Whether the rows of the matrix are integrals over cells, as in finite volumes (False: ``W`` is left out; the
        rows are difference quotients, and the spacing is uniform).
    """

    plan: Plan
    factor: float = -1.0
    integrated: bool = True

    def build(self, matrix: Operator) -> _Applied:
        """Return the preconditioner; of the matrix, only the number of rows is looked at.

        Raises
        ------
        SolverError
            If the rows are not the unknowns of the plan, are on another device, or the plan has boundary data.
        """
        rows, problem = matrix.rows, self.plan.problem
        if rows.size != problem.size or rows.context.distributed:
            raise SolverError(
                f"FastPoisson: the plan has {problem.size} unknowns, the matrix {rows.size} rows on this rank of "
                f"{rows.context.comm.size}: give all unknowns to one rank, in C order"
            )
        if rows.context.device is not self.plan.device:
            raise SolverError("FastPoisson: the plan is on another device than the matrix: give it device=context")
        if problem.loads:
            raise SolverError("FastPoisson: the plan has boundary data: make one with zero data")
        weights = 1.0 / problem.volumes() if self.integrated else problem.volumes() * 0 + 1.0
        dtype = self.plan.dtype
        inverse = Dat(rows, weights.reshape(rows.shape).astype(dtype), name="inverse volumes")
        return _Applied(self.plan, inverse, self.factor)
