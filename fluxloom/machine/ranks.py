"""The ranks of a run: starting them, what each computes on, and what they are together for records and tables."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

from fluxloom.comm.base import Comm
from fluxloom.comm.launchers import BEGUN, STATUS_FILE, without_launcher
from fluxloom.core.errors import CaseError, CommError
from fluxloom.device.bandwidth import available_threads
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.runtime import device_registry
from fluxloom.machine.system import command_says, processor

__all__ = [
    "Member",
    "RankDevices",
    "RankSpec",
    "Starter",
    "count_gpus",
    "device_name",
    "find_starter",
    "parse",
    "place_of",
    "rank_devices_of",
    "require_cores",
    "require_one",
    "spec_of",
    "start",
    "starts_ranks",
    "without_ranks",
]  # fmt: skip

VARIABLE = "FLUXLOOM_RANKS"
"""Environment variable that hands the entries of all ranks over to each of them."""

_PATIENCE = 60.0
"""Seconds that interrupted ranks may take to end; a second interruption ends them at once."""

_MOST, _MOST_THREADS, _MOST_A_CORE = 65_536, 4096, 32
"""Ranks that a text may name, threads of one of them, and ranks that are started for a core: more are a mistake."""

_GONE = (
    "error: one of {} ranks ended with status 0 in the middle of the run (exit in a library?), and the launcher ended "
    "the others\n"
)

_NUMBERED = {"cpu": f"the number of threads, 1 to {_MOST_THREADS}", "cuda": "the number of a GPU"}

_PROBE = """
import json, mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
paths = sorted({line.split()[-1] for line in open("/proc/self/maps") if "/libmpi" in line})
print(json.dumps([MPI.get_vendor()[0], paths]))
"""


@dataclass(frozen=True)
class RankSpec:
    """What one rank computes on.

    Parameters
    ----------
    device
        As `fluxloom.dsl.declare.runtime.open_device` takes it: ``"cuda:1"``, ``"cpu"``, ``"opencl:0"``.
    threads
        Threads of a CPU rank; 0: not said.
    """

    device: str
    threads: int = 0

    def __str__(self) -> str:
        return f"{self.device}:{self.threads}" if self.threads else self.device


def parse(text: str) -> tuple[RankSpec, ...]:
    """Return the entry of each rank.

    Parameters
    ----------
    text
        Entries ``device[:choice][*count]``, separated by commas. Behind the colon of ``cpu`` stands its number of
        threads: ``"cpu:1*4"`` are four ranks of one thread, ``"cuda:0,cpu:14"`` is a GPU and a rank of 14 threads.
        GPUs without a number are numbered from 0: ``"cuda*2"`` is ``"cuda:0,cuda:1"``.

    Raises
    ------
    CommError
        If an entry is not of that form.
    DeviceUnavailable
        If there is no such device.
    """
    registry = device_registry()
    found: list[RankSpec] = []
    for entry in text.split(","):
        match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*(?::([^*]*))?(?:\*\s*([0-9]{1,9})\s*)?", entry)
        count = int(match[3]) if match and match[3] else 1
        if match is None or count < 1:
            shown = repr(entry.strip()) if entry.strip() else "an empty entry"
            raise CommError(
                f"ranks {text!r}: {shown} is not of the form device[:choice][*count], as in cuda:0 or cpu:1*4"
            )
        if len(found) + count > _MOST:
            raise CommError(f"ranks {text!r} names more than {_MOST:,} ranks")
        name, choice = match[1], (match[2] or "").strip()
        _ = registry[name]
        what = _NUMBERED.get(name)
        if what and match[2] is not None and not _is_number(name, choice):
            raise CommError(f"ranks {text!r}: behind the colon of {name} stands {what}, not {choice!r}")
        if name == "reference" and match[2] is not None:
            raise CommError(f"ranks {text!r}: reference has no choice behind a colon")
        if name == "cpu":
            found += [RankSpec("cpu", int(choice or 0))] * count
        elif name == "cuda" and not choice:
            taken = sum(spec.device.startswith("cuda") for spec in found)
            found += [RankSpec(f"cuda:{taken + number}") for number in range(count)]
        else:
            found += [RankSpec(f"{name}:{choice}" if choice else name)] * count
    return tuple(found)


def _is_number(name: str, choice: str) -> bool:
    """Whether a choice is the number of a GPU, or a number of threads."""
    if re.fullmatch("[0-9]{1,9}", choice) is None:
        return False
    return name == "cuda" or 1 <= int(choice) <= _MOST_THREADS


def spec_of(comm: Comm) -> RankSpec | None:
    """Return what this rank was told to compute on, None where nothing was said.

    A CPU rank without a number of threads gets its share of the cores of the machine, as if all ranks there were CPU
    ranks. Ranks are not bound to cores: the threads of those on one machine should not be more than its cores.

    Raises
    ------
    CommError
        If there are not as many entries as ranks.
    """
    text = os.environ.get(VARIABLE, "")
    if not text:
        return None
    specs = parse(text)
    if len(specs) != comm.size:
        raise CommError(
            f"{VARIABLE}={text!r} names {len(specs)} ranks, but {comm.size} run: start them with "
            f"`fluxloom run --ranks`, or unset the variable"
        )
    spec = specs[comm.rank]
    if spec.device == "cpu" and not spec.threads:
        return replace(spec, threads=share_of_cores(comm))
    return spec


def share_of_cores(comm: Comm) -> int:
    """Return how many threads a rank may use when all ranks of its machine share the cores evenly, at least 1."""
    return max(1, available_threads() // comm.local_size)


def without_ranks(arguments: Sequence[str]) -> list[str]:
    """Return the words of a command line without ``--ranks TEXT`` and ``--ranks=TEXT``."""
    kept: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            return [*kept, word, *words]
        if word == "--ranks":
            next(words, None)
        elif not word.startswith("--ranks="):
            kept.append(word)
    return kept


@dataclass(frozen=True)
class Starter:
    """An ``mpiexec`` that belongs to the MPI library of mpi4py.

    Attributes
    ----------
    program
        Its path.
    family
        ``"MPICH"`` or ``"Open MPI"``.
    """

    program: str
    family: str

    def command(self, ranks: int, words: Sequence[str]) -> list[str]:
        """Return the command that runs Python with these words on so many ranks of this machine."""
        options = ["--bind-to", "none"] if self.family == "Open MPI" else []
        return [self.program, *options, "-n", str(ranks), sys.executable, *words]

    def environment(self) -> dict[str, str]:
        """Return the environment that it runs in.

        Open MPI refuses to run as root and to start more ranks than cores unless it is told otherwise, and gives ranks
        a terminal where this process has none: then they are told to write plain text. Ranks of one machine talk
        through its memory: MPICH on UCX, where the user has said nothing about it, opens no ports for them.
        """
        variables = without_launcher()
        if not sys.stdout.isatty():
            variables["TERM"] = "dumb"
        if self.family == "Open MPI":
            variables |= {
                "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_rmaps_base_oversubscribe": "1",
                "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
            }
        else:
            variables.setdefault("UCX_TLS", "^tcp")
        return variables


def find_starter() -> Starter:
    """Return the launcher of the MPI library that mpi4py uses.

    It is looked for beside the Python interpreter, near the library, and in the search path.

    Raises
    ------
    CommError
        If mpi4py, its library or the launcher is missing.
    """
    seen = _probe()
    if seen.returncode:
        why = (seen.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise CommError(f"several ranks need mpi4py and an MPI library ({why}): pip install 'fluxloom[mpi]'")
    vendor, libraries = json.loads(seen.stdout.splitlines()[-1])
    family = "Open MPI" if vendor == "Open MPI" else "MPICH"
    others: list[str] = []
    for program in _candidates([Path(path) for path in libraries]):
        found = _family(program)
        if found == family:
            return Starter(program, family)
        others.append(f"{program} ({found or 'of an unknown MPI'})")
    seen_text = f"; found {', '.join(others)}" if others else ""
    place = ", ".join(libraries) or "an unknown place"
    raise CommError(
        f"no mpiexec for the MPI library of mpi4py, {vendor} in {place}{seen_text}: "
        f"install that of the library (pip install 'fluxloom[mpi]' brings both), or start the ranks yourself"
    )


def _probe() -> subprocess.CompletedProcess[str]:
    """Ask a Python of its own which MPI mpi4py uses, for the library leaves traces in a process."""
    return subprocess.run(
        [sys.executable, "-c", _PROBE], capture_output=True, text=True, check=False, env=without_launcher(),
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def _candidates(libraries: Sequence[Path]) -> Iterator[str]:
    """Yield launchers, the likeliest first."""
    folders = [Path(sys.executable).parent]
    for library in libraries:
        folders += [parent / "bin" for parent in library.parents[1:]]
    seen: set[str] = set()
    for folder in (*map(str, folders), None):
        for name in ("mpiexec", "mpiexec.hydra", "mpiexec.mpich", "mpiexec.openmpi", "mpirun"):
            program = shutil.which(name, path=folder)
            if program and program not in seen:
                seen.add(program)
                yield program


def _family(program: str) -> str:
    """Return what library a launcher says it is of; empty if it is none that is known."""
    text = command_says([program, "--version"], without_launcher()).lower()
    if any(word in text for word in ("open mpi", "open-mpi", "openrte", "prrte", "prte")):
        return "Open MPI"
    return "MPICH" if any(word in text for word in ("hydra", "mpich", "intel(r) mpi")) else ""


def require_cores(ranks: int) -> None:
    """Raise `CommError` where so many ranks on this machine must be a mistake: they would take all its memory."""
    cores = available_threads()
    if ranks > _MOST_A_CORE * cores:
        raise CommError(
            f"{ranks:,} ranks on the {cores} core{'s' if cores > 1 else ''} of this machine: at most "
            f"{_MOST_A_CORE * cores} are started; for several machines use their own mpiexec or srun"
        )


def start(specs: Sequence[RankSpec], arguments: Sequence[str], *, quiet: bool = False) -> int:
    """Run the command line on several ranks of this machine and return its exit status.

    Parameters
    ----------
    specs
        What each rank computes on.
    arguments
        Words of the command line; ``--ranks`` among them is left out.
    quiet
        Whether what the ranks print as results is thrown away; messages and errors are not.

    Returns
    -------
    int
        0 when all ranks came to their end and ended well; that with which a rank ended the others
        (`ending_together`); else that of the launcher: 130 after an interruption, 128 more than the number of the
        signal that ended it; 1 where that is 0, but a rank went in the middle of the run.

    Raises
    ------
    CommError
        If there is no launcher for the MPI library, or there are far more ranks than cores.
    """
    require_cores(len(specs))
    starter = find_starter()
    command = starter.command(len(specs), ["-m", "fluxloom", *without_ranks(arguments)])
    with tempfile.TemporaryDirectory(prefix="fluxloom-ranks-") as folder:
        said = Path(folder) / "status"
        environment = starter.environment() | {VARIABLE: ",".join(map(str, specs)), STATUS_FILE: str(said)}
        try:
            process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL if quiet else None)
        except OSError as error:
            raise CommError(f"{shlex.join(command)} could not be started: {error}") from error
        status = _wait(process)
        text = said.read_text(encoding="ascii") if said.exists() else ""
    if text == BEGUN:
        if not status:
            sys.stderr.write(_GONE.format(len(specs)))
        return status or 1
    return int(text) if status and text else status


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Return the exit status of a launcher, which gets the signals that this process gets."""
    ended: list[int] = []

    def end(number: int, _frame: object) -> None:
        ended.append(number)
        process.terminate()

    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, end) if main else None
    try:
        status = process.wait()
    except KeyboardInterrupt:  # a terminal has interrupted the launcher too
        try:
            process.wait(timeout=_PATIENCE)  # the ranks write what they have
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.terminate()
            process.wait()
        return 130
    finally:
        if main:
            signal.signal(signal.SIGTERM, before)
    if ended:
        return 128 + ended[0]
    return status if status >= 0 else 128 - status


def starts_ranks(comm: Comm, ranks: str) -> tuple[RankSpec, ...]:
    """Return what the ranks compute on that have to be started now; none when this process is to run itself.

    Parameters
    ----------
    comm
        Those that run already.
    ranks
        As `fluxloom.machine.ranks.parse` takes it; empty: nothing was said.

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
class RankDevices:
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


def rank_devices_of(context: Context) -> RankDevices:
    """Return all ranks of a context. Collective."""
    device, comm = context.device, context.comm
    host = platform.node()
    gpu = ""
    if count_gpus(context):
        gpu = str(getattr(device, "identity", "")) or f"{host} {device.name} {comm.rank}"
    mine = Member(comm.rank, host, device.name, device_name(context), context.threads, gpu, device.items)
    return RankDevices(tuple(comm.allgather(mine)))


def device_name(context: Context) -> str:
    """Return the hardware behind a context."""
    if context.device.name in ("cpu", "reference"):
        count = context.threads
        return f"{processor().name}, {count} thread{'s' if count != 1 else ''}"
    return context.device.describe()


def count_gpus(context: Context) -> int:
    """Return how many GPUs a context has: a device of work items is one, unless its driver runs on a processor."""
    return int(context.device.items and not getattr(context.device, "is_cpu", False))
