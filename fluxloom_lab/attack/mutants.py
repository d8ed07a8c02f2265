"""Find out which small faults, planted in the heart of the package, its tests find.

    python -m fluxloom_lab.attack.mutants --sample 100 --seed 1 --json mutants.json

Each mutant is one fault in one module. It is killed if one of the tests that concern the module fails or does not end
in time, else it survives: a test is missing, or the mutant means the same. `mutants.toml` has the tests of each module,
and the mutants that were judged to mean the same, with the reason. Mutants live in copies of the checkout.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from fluxloom.core.errors import CaseError
from fluxloom_lab.attack.planted import Mutation, applied, mutations, sample

__all__ = ["Result", "main", "summary"]

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("fluxloom", "fluxloom_lab", "tests", "examples", "bench", "design", "docs", "pyproject.toml", "Makefile",
           "mkdocs.yml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE")  # fmt: skip
_STATES = ("killed", "survived", "equivalent")
_PATIENCE, _LEAST = 4.0, 60.0
"""A mutant may take so many times as long as the tests do without it, and at least so many seconds."""


@dataclass(frozen=True)
class Result:
    """What became of a mutant.

    Attributes
    ----------
    mutation
        The fault.
    status
        ``"killed"``, ``"survived"`` or ``"equivalent"``.
    seconds
        How long its tests ran.
    reason
        The test that failed, or why the mutant means the same.
    """

    mutation: Mutation
    status: str
    seconds: float
    reason: str

    def record(self) -> dict[str, Any]:
        """Return what the record of the run has of it."""
        one = self.mutation
        return {
            "file": one.file, "line": one.line, "kind": one.kind, "before": one.before, "after": one.after,
            "status": self.status, "seconds": round(self.seconds, 1), "reason": self.reason,
        }  # fmt: skip


class Copies:
    """Copies of the checkout, one for each mutant that is tested at a time."""

    def __init__(self, folder: Path, count: int) -> None:
        self._free: queue.Queue[Path] = queue.Queue()
        folder.chmod(0o755)  # some tests give up the rights of root
        for number in range(count):
            copy = folder / f"copy{number}"
            copy.mkdir()
            for name in _COPIED:
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
                elif (ROOT / name).exists():
                    shutil.copy2(ROOT / name, copy / name)
            self._free.put(copy)

    def run(self, tests: Sequence[str], mutation: Mutation | None, limit: float) -> tuple[str, float]:
        """Run tests with a fault; return what failed, empty if nothing did, and the seconds."""
        copy = self._free.get()
        try:
            with _planted(copy, mutation):
                return self._run(copy, tests, limit)
        finally:
            self._free.put(copy)

    def _run(self, copy: Path, tests: Sequence[str], limit: float) -> tuple[str, float]:
        words = [sys.executable, "-m", "pytest", "-x", "-n0", "-q", "-p", "no:cacheprovider", "-k", "not opencl",
                 f"--basetemp={copy / 'build' / 'tests'}", *(f"tests/{name}" for name in tests)]  # fmt: skip
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FLUXLOOM_", "PYTHON"))}
        environment = kept | {"PYTHONPATH": str(copy), "FLUXLOOM_CACHE": str(ROOT / "build" / "mutants" / copy.name)}
        (copy / "build").mkdir(exist_ok=True)
        begin = time.monotonic()
        with subprocess.Popen(words, cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", start_new_session=True) as process:  # fmt: skip
            try:
                output, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return f"not done after {limit:.0f} s", time.monotonic() - begin
        return _failure(process.returncode, output), time.monotonic() - begin


@contextlib.contextmanager
def _planted(copy: Path, mutation: Mutation | None) -> Any:
    """Plant a fault in a copy for a while."""
    if mutation is None:
        yield
        return
    path = copy / mutation.file
    source = path.read_text(encoding="utf-8")
    compiled = Path(importlib.util.cache_from_source(str(path)))
    try:
        compiled.unlink(missing_ok=True)  # it may be as old and as long as the text of the mutant
        path.write_text(applied(source, mutation), encoding="utf-8")
        yield
    finally:
        path.write_text(source, encoding="utf-8")
        compiled.unlink(missing_ok=True)


def _failure(status: int, output: str) -> str:
    """Return the first test that failed, in a run of pytest with this exit status; empty if none did."""
    if status == 0:
        return ""
    for line in output.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split(" - ")[0]
    lines = output.strip().splitlines()
    return f"status {status}: {lines[-1] if lines else ''}"


def _chosen(table: dict[str, Any], only: str) -> dict[str, list[str]]:
    """Return the tests of the modules that the command line names."""
    patterns = [word.strip() for word in only.split(",") if word.strip()] or ["*"]
    found = {file: tests for file, tests in table["tests"].items() if any(fnmatchcase(file, one) for one in patterns)}
    if not found:
        raise CaseError(f"--only {only!r} names no module of mutants.toml: {', '.join(table['tests'])}")
    return found


def _attack(given: argparse.Namespace, folder: Path) -> list[Result]:
    """Test the mutants of a sample."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    tests = _chosen(table, given.only)
    judged = {(one["file"], one["before"], one["after"]): one["reason"] for one in table.get("equivalent", ())}
    groups = [mutations(file, (ROOT / file).read_text(encoding="utf-8")) for file in tests]
    chosen = sample(groups, given.sample, given.seed)
    copies = Copies(folder, given.jobs)
    limits = {}
    for names in {tuple(tests[one.file]): None for one in chosen}:
        failed, seconds = copies.run(names, None, 1800.0)
        if failed:
            raise CaseError(f"the tests fail without a mutant: {failed}")
        limits[names] = max(_LEAST, _PATIENCE * seconds)
        _tell(f"without a mutant {seconds:5.1f} s: {' '.join(names)}")

    def attempt(mutation: Mutation) -> Result:
        if mutation.key in judged:
            return Result(mutation, "equivalent", 0.0, judged[mutation.key])
        names = tuple(tests[mutation.file])
        failed, seconds = copies.run(names, mutation, limits[names])
        result = Result(mutation, "killed" if failed else "survived", seconds, failed)
        _tell(f"{result.status:8} {seconds:5.1f} s  {mutation.file}:{mutation.line} {mutation.kind}: "
              f"{_short(mutation.before)} -> {_short(mutation.after)}  {failed}")  # fmt: skip
        return result

    with ThreadPoolExecutor(given.jobs) as pool:
        return list(pool.map(attempt, chosen))


def _tell(line: str) -> None:
    """Write a line of what the command says."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else f"{words[:57]}..."


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """Return how many mutants there were of each status and file, and the share that was killed."""
    counts = Counter(one.status for one in results)
    files = sorted({one.mutation.file for one in results})
    rows = {file: dict(Counter(one.status for one in results if one.mutation.file == file)) for file in files}
    differ = counts["killed"] + counts["survived"]
    return {"mutants": len(results), **counts, "killed_percent": round(100 * counts["killed"] / max(1, differ), 1),
            "files": rows}  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    """Do what the command line says; return 1 if a mutant survived."""
    parser = argparse.ArgumentParser(prog="python -m fluxloom_lab.attack.mutants", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--sample", type=int, default=21, help="number of mutants")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    parser.add_argument("--only", default="", help="files, separated by commas; with * and ?")
    parser.add_argument("--json", type=Path, help="where the record goes")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="fluxloom-mutants-") as folder:
        results = _attack(given, Path(folder))
    found = summary(results)
    for file, row in found["files"].items():
        _tell(f"{file:45} " + "  ".join(f"{row.get(name, 0):3} {name}" for name in _STATES))
    _tell(f"{found['mutants']} mutants, {found['killed_percent']} % killed of those that differ")
    if given.json:
        record = {"case": "attack-mutants", "seed": given.seed, **found, "results": [one.record() for one in results]}
        given.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return int(found.get("survived", 0) > 0)


if __name__ == "__main__":
    sys.exit(main())
