"""What this machine is: processor, vector units, caches, memory, and which commit is running."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fluxloom.device.bandwidth import available_memory, available_threads

__all__ = [
    "Processor",
    "asked_commit",
    "command_says",
    "command_text",
    "commit",
    "fluxloom_version",
    "package_version",
    "processor",
    "python_says",
    "python_version",
]

_SECONDS = 30

_WIDTHS = (("avx512f", 512, "AVX-512"), ("avx2", 256, "AVX2"), ("avx", 256, "AVX"), ("sse2", 128, "SSE2"),
           ("sve", 128, "SVE"), ("asimd", 128, "NEON"))  # fmt: skip


@dataclass(frozen=True)
class Processor:
    """The processor of this machine.

    Attributes
    ----------
    name
        Model.
    vector_bits, vector_name
        Width and name of the widest vector instructions (0 and empty where unknown).
    cores
        Cores this process may use.
    caches
        Level to text, as ``{"L3": "32M"}``.
    memory
        Free bytes.
    """

    name: str
    vector_bits: int
    vector_name: str
    cores: int
    caches: dict[str, str]
    memory: int


def processor(info: Path = Path("/proc/cpuinfo"), cpu: Path = Path("/sys/devices/system/cpu/cpu0")) -> Processor:
    """Return what the system says about its processor."""
    text = info.read_text(errors="replace") if info.exists() else ""
    first = text.partition("\n\n")[0]
    fields = {line.partition(":")[0].strip(): line.partition(":")[2].strip() for line in first.splitlines()}
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    bits, name = next(((bits, name) for flag, bits, name in _WIDTHS if flag in flags), (0, ""))
    model = fields.get("model name") or platform.processor() or platform.machine()
    caches = _caches(cpu / "cache")
    return Processor(" ".join(model.split()), bits, name, available_threads(), caches, available_memory())


def _caches(root: Path) -> dict[str, str]:
    """Return the data caches of a core, by level."""
    found: dict[str, str] = {}
    for index in sorted(root.glob("index*")):
        try:
            kind, level, size = ((index / name).read_text().strip() for name in ("type", "level", "size"))
        except OSError:
            continue
        if kind != "Instruction":
            found[f"L{level}"] = re.sub(r"^(\d+)K$", lambda m: _mebibytes(int(m[1])), size)
    return found


def _mebibytes(kibibytes: int) -> str:
    return f"{kibibytes // 1024} MiB" if kibibytes % 1024 == 0 and kibibytes else f"{kibibytes} KiB"


def package_version(distribution: str) -> str:
    """Return the version of an installed distribution, or an empty string."""
    from importlib import metadata

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def fluxloom_version() -> str:
    """Return the version of this package, installed or run from a checkout."""
    root = Path(__file__).resolve().parents[2]
    try:
        return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return package_version("fluxloom") or "unknown"


def python_version() -> str:
    """Return name and version of the interpreter."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def commit() -> str:
    """Return the commit of the checkout this package runs from, ``+`` appended when it was changed.

    ``"unknown"`` where there is no checkout or no git.
    """
    root = Path(__file__).resolve().parents[2]
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return "unknown"

    said = command_says([git, "-C", str(root), "status", "--porcelain=v2", "--branch", "--", "fluxloom"])
    heads, changes = [], []
    for line in said.splitlines():
        (heads if line.startswith("# ") else changes).append(line)
    name = next((line.split()[2] for line in heads if line.startswith("# branch.oid ")), "")
    return f"{name[:12]}{'+' if changes else ''}" if len(name) >= 12 else "unknown"


def asked_commit() -> Callable[[], str]:
    """Begin to ask for the `commit`, for which git takes a while, and return what waits for the answer."""
    found: list[str] = []
    asking = threading.Thread(target=lambda: found.append(commit()), daemon=True)
    asking.start()

    def answer() -> str:
        asking.join()
        return found[0] if found else "unknown"

    return answer


def command_text(arguments: Sequence[str] | None = None) -> str:
    """Return the command line as one would type it."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    return shlex.join(["fluxloom", *words])


def command_says(
    command: Sequence[str], environment: Mapping[str, str] | None = None, seconds: float = _SECONDS
) -> str:
    """Return the output of a command, empty when it fails.

    Parameters
    ----------
    command
        Program and arguments.
    environment
        Variables that differ from those of this process.
    seconds
        When to give it up.
    """
    try:
        done = subprocess.run(
            list(command), capture_output=True, text=True, check=False, timeout=seconds, stdin=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def python_says(
    arguments: Sequence[str], before: Sequence[str] = (), environment: Mapping[str, str] | None = None,
    seconds: float = _SECONDS,
) -> str:  # fmt: skip
    """Return the output of Python in a process of its own, for drivers and MPI leave traces; empty when it fails.

    Parameters
    ----------
    arguments
        Of the interpreter.
    before
        A launcher.
    environment, seconds
        As in `command_says`.
    """
    return command_says([*before, sys.executable, *arguments], environment, seconds)
