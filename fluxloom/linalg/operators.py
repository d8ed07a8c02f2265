"""What solvers ask of a matrix and of a preconditioner."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import ClassVar, Protocol, runtime_checkable

from fluxloom.core.strategies import Strategy
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.linalg.direct.calls import HostStep

__all__ = ["BuiltPreconditioner", "Operator", "Preconditioner", "Step", "instead", "steps_of"]

Step = Loop | Reset | HostStep


def steps_of(found: Step | Sequence[Step]) -> Sequence[Step]:
    """Return what a product takes as a sequence, be it one loop or several."""
    return found if isinstance(found, Sequence) else (found,)


@runtime_checkable
class Operator(Protocol):
    """A square matrix, or what acts like one, as loops over `rows`: one loop, or several in their order."""

    @property
    def rows(self) -> Set:
        """The set of vectors."""
        ...

    def product(self, x: Dat, y: Dat) -> Step | Sequence[Step]:
        """Return what forms ``y = A x``."""
        ...

    def product_dot(self, x: Dat, y: Dat, result: Global) -> Step | Sequence[Step]:
        """Return what forms ``y = A x``, ``result += x . y``."""
        ...

    def residual(self, x: Dat, b: Dat, r: Dat) -> Step | Sequence[Step]:
        """Return what forms ``r = b - A x``."""
        ...


def instead(given: object) -> str:
    """Return words for what is given in place of a sparse matrix, and what to take instead.

    Parameters
    ----------
    given
        Anything: what has an attribute ``matrix`` is assembled, what has ``jacobi`` has no rows but a diagonal.
    """
    kind = type(given).__name__
    if hasattr(given, "matrix") and not isinstance(given, Operator):
        return f"{kind}: take its .matrix"
    if hasattr(given, "jacobi"):
        return f"{kind}, which stores no rows: take GlobalMatrix(...).matrix, or the preconditioner .jacobi() of it"
    return kind if type(given).__repr__ is object.__repr__ else repr(given)


class BuiltPreconditioner(Protocol):
    """A fixed linear operator ``B`` near the inverse of a matrix; symmetric and positive definite for CG."""

    @property
    def diagonal(self) -> Dat | None:
        """The diagonal, where ``B`` is nothing else: solvers fold it into loops of their own."""
        ...

    def apply(self, r: Dat, z: Dat) -> Sequence[Step]:
        """Return loops that form ``z = B r``; ``r`` and ``z`` are different dats of the same shape."""
        ...


_HERE = MappingProxyType({
    "approximate_inverse": "fluxloom.linalg.precond.approximate_inverse:ApproximateInverse",
    "chebyshev": "fluxloom.linalg.precond.chebyshev:Chebyshev",
    "damped_jacobi": "fluxloom.linalg.precond.chebyshev:DampedJacobi",
    "jacobi": "fluxloom.linalg.precond.jacobi:Jacobi",
    "none": "fluxloom.linalg.precond.jacobi:Identity",
    "smoothed_aggregation": "fluxloom.linalg.precond.multigrid:SmoothedAggregation",
    "ssor": "fluxloom.linalg.precond.ssor:SSOR",
})  # fmt: skip


class Preconditioner(Strategy, what="preconditioner", group="fluxloom.preconditioners", members=_HERE):
    """How to make a preconditioner: a member is a frozen dataclass with the choices, and a method `build`."""

    rank_independent: ClassVar[bool] = False
    """Whether what it makes is the same on any number of ranks, but for the rounding of sums.

    Runs that are to be so (``deterministic=global``) warn of those that do not say it.
    """

    def build(self, matrix: Operator, /) -> BuiltPreconditioner:
        """Return the preconditioner of a matrix, for the values that it has now. Collective."""
        raise NotImplementedError(f"{type(self).__name__} has to define build(matrix)")
