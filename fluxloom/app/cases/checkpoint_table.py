"""The table of case files about checkpoints of solvers that advance in steps and keep their state in one file."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from fluxloom.app.case import Table

__all__ = ["StepCheckpointTable", "Steps"]

Steps = Annotated[int, Field(ge=0, le=10**9)]


class StepCheckpointTable(Table):
    """``[checkpoint]``: ``checkpoint.npz`` among the results, from which the next run goes on.

    Attributes
    ----------
    every
        Steps between two checkpoints; there is one behind the last step too. 0: none.
    resume
        Whether to go on from the file where there is one; otherwise it is replaced.
    """

    every: Steps = 0
    resume: bool = True

    @model_validator(mode="after")
    def _consistent(self) -> StepCheckpointTable:
        if not self.every and self.changed(("resume",)):
            raise ValueError("resume is there but no checkpoint is taken: give every, the steps between two")
        return self
