"""What a verification is: numbers beside their references."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

from fluxloom.app.crew import place_of
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context

__all__ = ["Check", "Tell", "Verification", "VerifyOptions", "as_json"]

Tell = Callable[[str], None]
"""Takes a line of progress."""


@dataclass(frozen=True)
class Check:
    """A number beside its reference.

    Attributes
    ----------
    name
        What was computed.
    value, reference
        The number, and what it should be.
    tolerance
        Largest relative deviation; absolute where the reference is 0.
    source
        Where the reference comes from.
    """

    name: str
    value: float
    reference: float
    tolerance: float
    source: str

    @property
    def deviation(self) -> float:
        """The relative deviation; absolute where the reference is 0."""
        difference = abs(self.value - self.reference)
        return difference / abs(self.reference) if self.reference else difference

    @property
    def ok(self) -> bool:
        """Whether the number is within the tolerance."""
        return isfinite(self.value) and self.deviation <= self.tolerance

    def record(self) -> dict[str, Any]:
        """Return the check as ``verify --json`` writes it."""
        return {
            "name": self.name,
            "value": self.value,
            "reference": self.reference,
            "tolerance": self.tolerance,
            "source": self.source,
            "ok": self.ok,
        }


@dataclass(frozen=True)
class VerifyOptions:
    """What the command line says.

    Attributes
    ----------
    device, threads
        Where to run.
    full
        Whether to run the long checks too.
    data
        Folder of public reference data, for checks that read files; they are left out without it.
    comm
        The ranks.
    ranks
        What each rank computes on, as text; empty: ``device`` and ``threads``.
    """

    device: str = "cpu"
    threads: int = 0
    full: bool = False
    data: Path | None = None
    comm: Comm = field(default_factory=SelfComm)
    ranks: str = ""

    def context(self, threads: int | None = None, *, tuning: bool = True) -> Context:
        """Return a new context on the device of this rank, with other threads if they are given."""
        place = place_of(self.comm, self.device, self.threads if threads is None else threads, self.ranks)
        return Context(place.device, threads=place.threads, tuning=tuning, comm=self.comm)


    def native_context(self) -> Context:
        """Return a new context on a device that runs generated code.

        Raises
        ------
        CaseError
            On one that does not.
        """
        context = self.context()
        if not context.device.native:
            raise CaseError(f"the device {context.device.name} runs no generated code, which is what is verified here")
        return context


class Verification(Protocol):
    """A set of checks.

    One that runs on several ranks has an attribute ``ranked`` that is true; every rank yields the same checks then,
    and the numbers of rank 0 count.
    """

    @property
    def title(self) -> str:
        """What is verified, in one line."""
        ...

    def run(self, options: VerifyOptions, tell: Tell) -> Iterator[Check]:
        """Yield the checks as they are done."""
        ...


def as_json(case: str, device: str, checks: list[Check], ranks: int = 1) -> dict[str, Any]:
    """Return the record of a verification."""
    return {"case": case, "device": device, "ranks": ranks, "checks": [check.record() for check in checks]}
