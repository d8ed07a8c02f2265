"""What a verification is: numbers beside their references."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fluxloom.comm.base import Comm, SelfComm
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.machine.ranks import place_of
from fluxloom_lab.options import device_option, option, ranks_option, threads_option

__all__ = ["Check", "DataOptions", "FullOptions", "RankedOptions", "Tell", "Verification", "VerifyOptions", "as_json"]

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
    """What every verification is given.

    Attributes
    ----------
    device, threads
        Where to run.
    comm
        The ranks.
    """

    device: str = device_option()
    threads: int = threads_option()
    comm: Comm = field(default_factory=SelfComm)

    def context(self, threads: int | None = None, *, tuning: bool = True) -> Context:
        """Return a new context on the device of this rank, with other threads if they are given."""
        return self._context("", threads, tuning)

    def _context(self, ranks: str, threads: int | None, tuning: bool) -> Context:
        place = place_of(self.comm, self.device, self.threads if threads is None else threads, ranks)
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


@dataclass(frozen=True)
class FullOptions(VerifyOptions):
    """Options of a verification that has long checks: whether to run them too."""

    full: bool = option(False, help="The long checks too.")


@dataclass(frozen=True)
class DataOptions(FullOptions):
    """Options of a verification that reads public reference data: their folder; without, what needs it is left out."""

    data: Path | None = option(
        None, metavar="DIR", kind=Path | None, exists=True, file_okay=False, envvar="FLUXLOOM_DATA",
        help="Folder of public reference data; checks that need it are left out without.",
    )  # fmt: skip


@dataclass(frozen=True)
class RankedOptions(FullOptions):
    """Options of a verification that runs on several ranks: what each computes on; empty: ``device`` and ``threads``.

    Every rank yields the same checks, and the numbers of rank 0 count.
    """

    ranks: str = ranks_option()

    def context(self, threads: int | None = None, *, tuning: bool = True) -> Context:
        """Return a new context on the device of this rank, with other threads if they are given."""
        return self._context(self.ranks, threads, tuning)


Options = TypeVar("Options", bound=VerifyOptions)


class Verification(Protocol[Options]):
    """A set of checks.

    Its options are the fields of a dataclass, from which the command line is made; one that runs on several ranks has
    `RankedOptions`.
    """

    @property
    def title(self) -> str:
        """What is verified, in one line."""
        ...

    @property
    def options(self) -> type[Options]:
        """The options that it has."""
        ...

    def run(self, options: Options, tell: Tell) -> Iterator[Check]:
        """Yield the checks as they are done."""
        ...


def as_json(case: str, device: str, checks: list[Check], ranks: int = 1) -> dict[str, Any]:
    """Return the record of a verification."""
    return {"case": case, "device": device, "ranks": ranks, "checks": [check.record() for check in checks]}
