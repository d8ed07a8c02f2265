"""The keys of ``[initial]`` by which a case starts from the result of another, in every solver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import model_validator

from fluxloom.cases.files.case import CaseModel
from fluxloom.cases.files.strategy_tables import Table
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.run.flow import Flow

__all__ = ["StartTable", "started"]

Array = npt.NDArray[np.float64]


class StartTable(Table):
    """``[initial]`` of a solver that has no other start than another result.

    Attributes
    ----------
    file
        A result to start from: a folder of results, its ``checkpoint.h5``, or ``final.vtkhdf``, ``.vtu`` or ``.vti``;
        of any mesh, order and number of ranks.
    outside
        ``"nearest"``: cells that the mesh of the result does not cover start from its nearest values; else they are an
        error.
    keep_time
        Whether time and steps go on from those of the result; else they begin at 0.
    """

    file: str = ""
    outside: Literal["", "nearest"] = ""
    keep_time: bool = False

    @model_validator(mode="after")
    def _of_a_result(self) -> StartTable:
        if not self.file and (extra := self.changed(("outside", "keep_time"))):
            raise ValueError(f"{extra[0]} is there but file is not: name a result, or leave {extra[0]} out")
        return self

    def alone(self, *keys: str) -> None:
        """Raise `ValueError` where a result is given and another start too."""
        if self.file and (extra := self.changed(keys)):
            raise ValueError(f"give only one of file and {extra[0]}")


def started(case: CaseModel, table: StartTable, flow: Flow, noise: Callable[[Array], Array] | None = None) -> None:
    """Let a flow start from the result that a case names, if it does. Collective.

    Parameters
    ----------
    case, table, flow
        The case, its ``[initial]``, and what is made of it.
    noise
        Velocity that is added to that of the result, a function of places ``(n, d)``.

    Raises
    ------
    CaseError
        If the flow cannot.
    """
    if not table.file:
        return
    from fluxloom.cases.files.loading import rebuilt
    from fluxloom.run.start import Start

    context = flow.context
    try:
        start = Start(
            Path(table.file), context.comm, outside=table.outside, keep_time=table.keep_time,
            case=case.model_dump(), noise=noise,
            rebuild=lambda tables: rebuilt(tables, context),
        )  # fmt: skip
        try:
            flow.start_from(start)
        finally:
            start.close()
    except SolverError as error:
        place = "" if Path(table.file).exists() else f"; paths in case files are relative to {Path.cwd()}"
        raise CaseError(f"initial.file: {error}{place}") from None
