"""Options that several benchmarks have: each adds its own in a dataclass that takes what it needs of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fluxloom.cases.files.case import parse_schedule, parse_shares
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.core.dtypes import AoS, Blocked, Layout, SoA
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.links import TRANSPORTS
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.machine.ranks import place_of
from fluxloom.mesh.ranks.distribute import Partition
from fluxloom_lab.bench.base import Record
from fluxloom_lab.options import Option, combined, device_option, option, ranks_option, threads_option

__all__ = [
    "LAYOUTS",
    "METHODS",
    "BenchOptions",
    "Divided",
    "Laid",
    "Ranked",
    "Real",
    "Scheduled",
    "cells_option",
    "fused_option",
    "iterations_option",
    "known",
    "partition_option",
    "rounds_option",
    "shares_option",
    "transport_option",
]

METHODS: tuple[Partition, ...] = ("auto", "kway", "rcb", "block")
"""How ranks can divide a mesh."""

LAYOUTS: dict[str, Layout] = {"aos": AoS(), "soa": SoA(), "blocked": Blocked()}
"""Layouts by the name on the command line."""

Keep = Callable[[Record], None]
"""Takes the record of what has been measured so far."""


def _forget(_: Record) -> None:
    """Keep nothing."""


def known(name: str, allowed: Sequence[str]) -> Callable[[str], Any]:
    """Return what takes the value of an option that is one of some words, and says which they are for any other."""

    def made(value: str) -> str:
        if value in allowed:
            return value
        raise CaseError(f"{name} {value!r}{did_you_mean(value, allowed)} (allowed: {', '.join(allowed)})")

    return made


def cells_option(text: str, metavar: str = "SIZE") -> Any:
    """Return the option ``--cells``: the size of the problem, which each benchmark reads in its way."""
    return option("", "--cells", metavar=metavar, help=text)


def iterations_option(text: str = "Iterations a round") -> Any:
    """Return the option ``--iterations``."""
    return option(0, "--iterations", "-n", metavar="N", help=f"{text}; 0: its default.", shown="0", least=0)


def rounds_option(text: str = "Timed rounds") -> Any:
    """Return the option ``--rounds``."""
    return option(0, "--rounds", metavar="N", help=f"{text}; 0: its default.", shown="0", least=0)


def fused_option() -> Any:
    """Return the option ``--fused``, which is true unless ``--no-fused`` is given."""
    return option(True, "--fused/--no-fused", " /--unfused", help="Whether loops may be fused.")


def partition_option() -> Any:
    """Return the option ``--partition``."""
    text = "How ranks divide the mesh: auto, kway, rcb or block."
    return option("auto", metavar="NAME", help=text, shown="auto", made=known("--partition", METHODS))


def shares_option() -> Any:
    """Return the option ``--shares``."""
    text = "Cells of each rank: auto (equal), measured, or 3,1."
    return option("auto", metavar="TEXT", help=text, shown="auto", made=parse_shares)


def transport_option() -> Any:
    """Return the option ``--transport``."""
    text = "How messages between GPUs travel: auto, host, mpi, nccl or peer."
    return option("auto", metavar="NAME", help=text, made=known("--transport", ("auto", *TRANSPORTS)))


@dataclass(frozen=True)
class BenchOptions:
    """What every benchmark is given.

    Attributes
    ----------
    device, threads
        Where to run.
    command
        The command line, for the record.
    comm
        The ranks.
    keep
        Takes the record of what has been measured so far, after each part of a long benchmark: the command line writes
        it, so that a run which is stopped leaves a record; its ``metrics`` have ``"complete": False``.
    """

    device: str = device_option()
    threads: int = threads_option()
    command: str = ""
    comm: Comm = field(default_factory=SelfComm)
    keep: Keep = field(default=_forget, repr=False)

    def context(self, **changes: Any) -> Context:
        """Return a new context on the device of this rank; ``changes`` are other arguments of it."""
        place = place_of(self.comm, self.device, self.threads)
        named = {"threads": place.threads, "comm": self.comm} | changes
        return Context(named.pop("device", place.device), **named)

    def native_context(self) -> Context:
        """Return a new context on a device that runs generated code.

        Raises
        ------
        CaseError
            On one that does not.
        """
        context = self.context()
        if not context.device.native:
            raise CaseError(f"the device {context.device.name} runs kernels as Python: there is nothing to time")
        return context


@dataclass(frozen=True)
class Ranked(BenchOptions):
    """Options of a benchmark that runs on several ranks, each with a part of the problem of its own.

    Attributes
    ----------
    ranks
        What each rank computes on, as text; empty: ``device`` and ``threads``.
    transport
        How messages between GPUs travel.
    """

    ranks: str = ranks_option()
    transport: str = transport_option()

    def context(self, **changes: Any) -> Context:
        """Return a new context on the device of this rank; ``changes`` are other arguments of it."""
        place = place_of(self.comm, self.device, self.threads, self.ranks)
        named = {"threads": place.threads, "comm": self.comm, "transport": self.transport} | changes
        return Context(named.pop("device", place.device), **named)


@dataclass(frozen=True)
class Divided(Ranked):
    """Options of a benchmark that divides one mesh among the ranks.

    Attributes
    ----------
    partition, shares
        How the mesh is divided, as in the table ``[partition]`` of a case file.
    """

    partition: Partition = partition_option()
    shares: str | Sequence[float] = shares_option()


def _schedule(text: str | None, strategy: str, block: int) -> Schedule:
    """Return a schedule with what is named by itself put in."""
    schedule = parse_schedule(text or "auto")
    return replace(schedule, strategy=strategy or schedule.strategy, block=block or schedule.block)


@dataclass(frozen=True)
class Scheduled(BenchOptions):
    """Options of a benchmark whose loops can be given a schedule."""

    schedule: Schedule = combined(
        Schedule, _schedule,
        Option(
            ("--schedule",), str | None, None, "TEXT",
            'Schedule of every loop: "auto", or a race strategy with options ("gather,block=256,lanes=8").',
        ),
        Option(("--strategy",), str, "", "NAME", "Race strategy, in place of the schedule's."),
        Option(
            ("--block",), int, 0, "N", "Block, in place of the schedule's; on GPUs work items a group.", least=0
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class Laid(BenchOptions):
    """Options of a benchmark whose values can have several layouts: a key of `LAYOUTS`; empty: its default."""

    layout: str = option("", metavar="NAME", help="Layout of values: aos, soa or blocked.")

    @property
    def chosen_layout(self) -> Layout | None:
        """The layout of the values; None: the benchmark's default.

        Raises
        ------
        CaseError
            If there is no such layout.
        """
        if self.layout and self.layout not in LAYOUTS:
            hint = did_you_mean(self.layout, LAYOUTS)
            raise CaseError(f"--layout {self.layout!r}{hint} (allowed: {', '.join(LAYOUTS)})")
        return LAYOUTS[self.layout] if self.layout else None


@dataclass(frozen=True)
class Real(BenchOptions):
    """Options of a benchmark of real numbers in double or single precision."""

    precision: str = option("", metavar="TYPE", help="Of values: float64 or float32.")

    @property
    def real_type(self) -> str:
        """The type of values: float64 by default, or float32.

        Raises
        ------
        CaseError
            For any other precision.
        """
        if self.precision not in ("", "float64", "float32"):
            raise CaseError(f"--precision {self.precision!r} (allowed: float64, float32)")
        return self.precision or "float64"
