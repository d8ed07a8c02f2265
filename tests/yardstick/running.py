"""Run a case through the command line, or a script, in a folder of its own, and read what it leaves behind."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tests.yardstick.results import numbers, read_results, timed
from tests.yardstick.table import ROOT, Case, changed_text, data_folders

PACKAGES = ("numpy", "scipy", "h5py", "meshio", "gmsh", "pyamg", "manifold3d")
"""Packages whose versions may change bits."""


@dataclass(frozen=True)
class Where:
    """On what cases run.

    Attributes
    ----------
    device
        As `fluxloom run --device` is told.
    ranks
        Ranks; more than one on the processor only.
    threads
        Threads of those cases that name no number.
    seconds
        Most time that a case may take.
    """

    device: str = "cpu"
    ranks: int = 1
    threads: int = 2
    seconds: float = 300.0

    def words(self, own: bool) -> list[str]:
        """Return the words for the command line; a case may have threads of its own."""
        if self.ranks > 1:
            return ["--ranks", f"{self.device}:1*{self.ranks}"]
        return ["--device", self.device, *([] if own else ["--threads", str(self.threads)])]


@dataclass(frozen=True)
class Run:
    """What came of a case: its record, the last lines that it said, and how long it took."""

    record: dict[str, Any]
    said: str
    seconds: float


def machine(where: Where) -> dict[str, str]:
    """Return all that bits may depend on beside the code: bits are compared only where this is the same."""
    compiler = os.environ.get("FLUXLOOM_CC") or os.environ.get("CC") or "cc"
    names = ("FLUXLOOM_CFLAGS", "PYOPENCL_BUILD_OPTIONS")
    return {
        "processor": processor(),
        "compiler": first_line([*shlex.split(compiler), "--version"]),
        "library": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "packages": ", ".join(f"{name} {found}" for name in PACKAGES if (found := installed(name))),
        "flags": " ".join(f"{name}={os.environ[name]}" for name in names if name in os.environ),
        "device": f"{where.device}, {where.ranks} ranks, {where.threads} threads",
    }


def processor() -> str:
    """Return the processor's name, model and a digest of what it can do."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    parts = [line.partition(":") for line in text.split("\n\n")[0].splitlines()]
    facts = {name.strip(): value.strip() for name, _, value in parts}
    flags = " ".join(sorted(facts.get("flags", facts.get("Features", "")).split()))
    model = " ".join(facts.get(name, "") for name in ("model name", "cpu family", "model"))
    return f"{model} {hashlib.sha256(flags.encode()).hexdigest()[:8]}".strip()


def first_line(command: list[str]) -> str:
    """Return the first line that a command says; empty where there is none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return ""
    return (done.stdout.splitlines() or [""])[0]


def installed(name: str) -> str:
    """Return the version of a package; empty without it."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def environment() -> dict[str, str]:
    """Return the environment of a run: this package, this Python, nothing that was tuned here, no long measurement."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    own = {"PYTHONPATH": str(ROOT), "PATH": path, "FLUXLOOM_TUNING": "off", "FLUXLOOM_METER_BYTES": str(8 << 20)}
    return {**os.environ, "OMP_WAIT_POLICY": "passive", **own}


def run_case(case: Case, where: Where, folder: Path) -> Run:
    """Run a case in a folder, which is empty, and return what came of it."""
    begin = time.perf_counter()
    for name in case.data:
        source = next(place / name for place in data_folders() if (place / name).exists())
        shutil.copy(source, folder / source.name)
    for name in case.files:
        shutil.copy(ROOT / name, folder / Path(name).name)
    for line in case.before:
        script, *arguments = shlex.split(line)
        made = _run([sys.executable, str(ROOT / script), *arguments], folder, where.seconds)
        if made.returncode:
            return Run({"status": {"exit": made.returncode, "failed": script}}, _end(made), 0.0)
    results = folder / "results"
    results.mkdir()
    done = _run(_command(case, where, folder), results if case.script else folder, where.seconds)
    record = read_results(results)
    if case.script:
        lines = [line for line in done.stdout.splitlines() if not timed("", line)]
        record["summary"] = {f"line {place}": found for place, line in enumerate(lines) if (found := numbers(line))}
    record["status"]["exit"] = done.returncode
    asked = {name: list(value) if isinstance(value, tuple) else value  # as JSON keeps it
             for name, value in asdict(case).items() if value and name in _ASKED}  # fmt: skip
    return Run({"asked": asked, **record}, _end(done), time.perf_counter() - begin)


_ASKED = ("case", "script", "arguments", "iterations", "change", "before")


def _command(case: Case, where: Where, folder: Path) -> list[str]:
    """Return the command that runs a case; a case file with changed keys is written for it."""
    if case.script:
        return [sys.executable, str(ROOT / case.script), *(word.format(device=where.device) for word in case.arguments)]
    source, named, own = ROOT / case.case, case.case, False
    if source.suffix == ".toml":
        text = changed_text(source.read_text(encoding="utf-8"), case.change)
        named = f"{case.name}.toml"
        (folder / named).write_text(text, encoding="utf-8")
        own = bool(tomllib.loads(text).get("run", {}).get("threads"))
    words = [*where.words(own), "--no-picture", "--output", "results"]
    count = ["--iterations", str(case.iterations)] if case.iterations else []
    return [sys.executable, "-m", "fluxloom", "run", named, *words, *count]


def _run(command: list[str], folder: Path, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, or end it when its time is over."""
    try:
        return subprocess.run(
            command, cwd=folder, env=environment(), capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"took more than {seconds:.0f} s")


def _end(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last lines that a command said."""
    return "\n".join([*done.stdout.splitlines(), *done.stderr.splitlines()][-12:])
