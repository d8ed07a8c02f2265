"""The ranks of a run: what each computes on, and what they are together for records and tables."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from fluxloom.app.ranks import VARIABLE, RankSpec, parse, share_of_cores, spec_of
from fluxloom.app.system import processor
from fluxloom.comm.base import Comm
from fluxloom.core.errors import CaseError, CommError
from fluxloom.dsl.context import Context

__all__ = ["Crew", "Member", "count_gpus", "crew_of", "device_name", "place_of", "require_one", "starts_ranks"]


def starts_ranks(comm: Comm, ranks: str) -> tuple[RankSpec, ...]:
    """Return what the ranks compute on that have to be started now; none when this process is to run itself.

    Parameters
    ----------
    comm
        Those that run already.
    ranks
        As `fluxloom.app.ranks.parse` takes it; empty: nothing was said.

    Raises
    ------
    CommError
        If one of several is the reference device, which knows one rank only.
    """
    if not ranks or comm.size > 1 or os.environ.get(VARIABLE):
        return ()
    specs = parse(ranks)
    if len(specs) == 1:
        return ()
    if any(spec.device == "reference" for spec in specs):
        raise CommError(
            f"ranks {ranks!r}: the device reference runs on one rank only; on several ranks take cpu, opencl or cuda"
        )
    return specs


def require_one(ranks: str | None, device: str | None, threads: int | None) -> None:
    """Raise `CaseError` where ``--device`` or ``--threads`` say what to run on and ``--ranks`` does, too."""
    for option, value in (("--device", device), ("--threads", threads)):
        if ranks and value is not None:
            raise CaseError(f"{option} and --ranks both say what to run on: give one of them")


def place_of(comm: Comm, device: str = "cpu", threads: int = 0, ranks: str = "") -> RankSpec:
    """Return what this rank computes on.

    What started the ranks comes first, then ``ranks``, then ``device`` and ``threads`` for all of them. On several
    ranks, CPU ranks without a number of threads share the cores of their machine evenly, and ``"cuda"`` without a
    number is the GPU of the rank's number on its machine; where CUDA shows a rank just one GPU, that one.

    Raises
    ------
    CommError
        If ``ranks`` does not have as many entries as there are ranks.
    """
    spec = spec_of(comm)
    if spec is None and ranks:
        specs = parse(ranks)
        if len(specs) != comm.size:
            raise CommError(
                f"ranks {ranks!r} names {len(specs)}, but {comm.size} run: start as many, or let `--ranks` do it "
                "without mpiexec"
            )
        spec = specs[comm.rank]
    if spec is None:
        spec = RankSpec(device, threads if device == "cpu" else 0)
    if comm.size == 1:
        return spec
    if spec.device == "cpu" and not spec.threads:
        return replace(spec, threads=share_of_cores(comm))
    return replace(spec, device=f"cuda:{_own_gpu(comm)}") if spec.device == "cuda" else spec


def _own_gpu(comm: Comm) -> int:
    """Return the number of the GPU of this rank, as CUDA counts those that it shows."""
    shown = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return 0 if shown and "," not in shown else comm.local_rank


@dataclass(frozen=True)
class Member:
    """One rank.

    Attributes
    ----------
    rank, host
        Its number, and the machine.
    device, name
        As of the context, and the hardware behind it.
    threads
        Of a loop.
    gpu
        Something that only this GPU has; empty on other devices.
    items
        Whether the device runs work items.
    """

    rank: int
    host: str
    device: str
    name: str
    threads: int
    gpu: str
    items: bool


class Place(TypedDict):
    """Where something ran: devices, each once, the hardware, different GPUs, ranks."""

    device: str
    device_name: str
    gpus: int
    ranks: int


@dataclass(frozen=True)
class Crew:
    """All ranks.

    Attributes
    ----------
    members
        One a rank.
    """

    members: Sequence[Member]

    @property
    def device(self) -> str:
        """Their devices, each once: ``"cuda+cpu"``."""
        return "+".join(dict.fromkeys(member.device for member in self.members))

    @property
    def device_name(self) -> str:
        """The hardware, counted where there are several ranks."""
        names = [member.name for member in self.members]
        if len(names) == 1:
            return names[0]
        return " + ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))

    @property
    def gpus(self) -> int:
        """Number of different GPUs."""
        return len({member.gpu for member in self.members if member.gpu})

    @property
    def place(self) -> Place:
        """What the record of a run or a benchmark says of them."""
        return {
            "device": self.device, "device_name": self.device_name, "gpus": self.gpus, "ranks": len(self.members),
        }  # fmt: skip

    def record(self) -> list[dict[str, str | int]]:
        """Return one row a rank."""
        return [
            {"rank": m.rank, "host": m.host, "device": m.device, "name": m.name, "threads": m.threads}
            for m in self.members
        ]


def crew_of(context: Context) -> Crew:
    """Return all ranks of a context. Collective."""
    device, comm = context.device, context.comm
    host = platform.node()
    gpu = ""
    if count_gpus(context):
        gpu = str(getattr(device, "identity", "")) or f"{host} {device.name} {comm.rank}"
    mine = Member(comm.rank, host, device.name, device_name(context), context.threads, gpu, device.items)
    return Crew(tuple(comm.allgather(mine)))


def device_name(context: Context) -> str:
    """Return the hardware behind a context."""
    if context.device.name in ("cpu", "reference"):
        count = context.threads
        return f"{processor().name}, {count} thread{'s' if count != 1 else ''}"
    return context.device.describe()


def count_gpus(context: Context) -> int:
    """Return how many GPUs a context has: a device of work items is one, unless its driver runs on a processor."""
    return int(context.device.items and not getattr(context.device, "is_cpu", False))
