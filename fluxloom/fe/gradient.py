"""Conjugate gradients with an operator whose product takes several loops: one over rows, one over cells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from fluxloom.dsl.chain import Chain
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.steps import Reset
from fluxloom.fe.poisson import CellOperator
from fluxloom.linalg.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.krylov import norms
from fluxloom.linalg.operators import Operator, Preconditioner, Recipe, Step
from fluxloom.linalg.status import Stop

__all__ = ["ElementGradient"]


class ElementGradient(ConjugateGradient):
    """Solves ``A x = b`` with `fluxloom.fe.poisson.LocalMatrices` or `fluxloom.fe.poisson.MatrixFree`.

    The method and its parameters are those of `fluxloom.linalg.ConjugateGradient`.

    Parameters
    ----------
    matrix
        The operator; some values have to be prescribed, or it is singular.
    b, x
        Right-hand side and solution, scalars on its rows.
    preconditioner
        Such as ``matrix.jacobi()``; None for none.
    stop
        When to end.
    interval
        Iterations between two looks at the residual, even. 0: chosen for the device.
    name
        In messages and reports.

    Raises
    ------
    SolverError
        If the parts do not fit each other.
    """

    def __init__(
        self,
        matrix: CellOperator,
        b: Dat,
        x: Dat,
        *,
        preconditioner: Recipe | Preconditioner | None = None,
        stop: Stop | None = None,
        interval: int = 0,
        name: str = "",
    ) -> None:
        operator = cast("Operator", matrix)  # lists of loops instead of loops, which are flattened below
        super().__init__(operator, b, x, preconditioner=preconditioner, stop=stop, interval=interval, name=name)

    def _chains(self) -> None:
        last, operator = self.rr[-1], cast("CellOperator", self.matrix)
        start: list[Step] = [
            *operator.residual(self.x, self.b, self.r), Reset(self.bb), Reset(last),
            self.loop(norms, self.b, self.r, self.bb, last), *self._begin(),
        ]  # fmt: skip
        body = [step for number in range(self.interval) for step in _flat(self._iteration(number))]
        self.start = Chain(start, name=f"{self.name}.start")
        self.body = Chain(body, name=self.name)
        self.end = None


def _flat(steps: Iterable[Any]) -> list[Step]:
    """Return the steps of a list that has lists of steps among them."""
    return [one for step in steps for one in (step if isinstance(step, list) else [step])]
