"""Runs tests with native code that is watched: Address-, UndefinedBehavior- and ThreadSanitizer, and Oclgrind.

    python -m fluxloom_lab.attack.sanitizers address [--full] [--only conformance] [--json FILE]

Generated C and the native helpers are compiled with the sanitizer, into a cache of their own; Python and libraries are
as they are. Before silence counts, a planted fault has to be reported, and the same function without it has not.

ThreadSanitizer needs to know how threads of OpenMP wait for each other. The OpenMP runtime of clang tells it, by
libarcher; that of gcc does not, and all its barriers would look like races.

Oclgrind is a simulator of a device of OpenCL, which knows the ends of buffers; with ``opencl`` loops run on it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["SANITIZERS", "Sanitizer", "main", "reports"]

ROOT = Path(__file__).resolve().parents[2]
MISSING = 77
"""Exit status where this machine lacks what a sanitizer needs."""

_PLAIN = "-O1 -g -fno-omit-frame-pointer"
_REPORT = re.compile(
    r"^(?:.*ERROR: AddressSanitizer: |.*: runtime error: |WARNING: ThreadSanitizer: |(?=Invalid ))(.*)$", re.MULTILINE
)
_ADDRESS = re.compile(r"\b(?:0x[0-9a-f]+|\d+)\b|\(pid=\d+\)")


@dataclass(frozen=True)
class Sanitizer:
    """How a sanitizer is brought into the process.

    Attributes
    ----------
    flags
        Of the compiler.
    options, option_text
        Variable of the environment that the sanitizer reads, and what it shall hold besides the place of reports.
    preloaded
        Libraries of gcc that have to be in the process from its beginning.
    compiler
        The compiler, if gcc will not do.
    fault
        Words in the report of the planted fault.
    device
        Whose loops it watches.
    """

    flags: str
    options: str
    option_text: str
    preloaded: tuple[str, ...]
    compiler: str
    fault: str
    device: str = "cpu"


SANITIZERS = {
    "address": Sanitizer(
        "-fsanitize=address -fsanitize-recover=address", "ASAN_OPTIONS",
        "detect_leaks=0:halt_on_error=0:detect_stack_use_after_return=1", ("libasan.so", "libstdc++.so.6"), "gcc",
        "heap-buffer-overflow",
    ),
    "undefined": Sanitizer(
        "-fsanitize=undefined", "UBSAN_OPTIONS", "print_stacktrace=1", (), "gcc", "signed integer overflow",
    ),
    "thread": Sanitizer(
        "-fsanitize=thread -Wl,-z,undefs", "TSAN_OPTIONS",
        "ignore_noninstrumented_modules=1:exitcode=0:history_size=4", ("libtsan.so",), "clang", "data race",
    ),
    "opencl": Sanitizer("", "", "", (), "gcc", "Invalid read", "opencl"),
}  # fmt: skip

OPENCL = {"opencl": (
    ("tests/conformance/test_scattered.py", "tests/conformance/test_subsets.py"), ("tests/conformance",),
)}  # fmt: skip
GROUPS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "graph": (("tests/unit/graph",), ("tests/unit/graph",)),
    "mesh files": (
        ("tests/unit/mesh/test_whole_files.py", "tests/unit/mesh/test_su2.py", "tests/unit/mesh/test_formats.py",
         "tests/unit/mesh/test_connectivity.py"),
        ("tests/unit/mesh",),
    ),
    "device": (("tests/unit/device/test_bandwidth.py", "tests/unit/device/test_buffer.py"), ("tests/unit/device",)),
    "conformance": (
        tuple(f"tests/conformance/test_{name}.py" for name in (
            "races", "chain", "grid", "ragged", "spmv", "scattered", "subsets", "tridiagonal", "tiling",
            "stencil_writes", "compressible_loops", "lattice_sparse",
        )),
        ("tests/conformance",),
    ),
    "ranks as threads": (
        ("tests/unit/dsl/test_exchange.py", "tests/unit/comm/test_thread_ranks.py",
         "tests/conformance/test_slots_ranks.py", "tests/parallel/test_two_level.py"),
        ("tests/unit/dsl", "tests/unit/comm"),
    ),
    "ranks of MPI": (
        ("tests/parallel/test_ranked_loops.py", "tests/parallel/test_ranked_ragged.py"), ("tests/parallel",),
    ),
}  # fmt: skip
"""Tests of a group: a selection, and all."""


def main(words: Sequence[str] | None = None) -> int:
    """Do what the command line says; return 1 for reports and failed tests, 77 where a sanitizer is missing."""
    parser = argparse.ArgumentParser(prog="python -m fluxloom_lab.attack.sanitizers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("name", choices=SANITIZERS)
    parser.add_argument("--full", action="store_true", help="all tests of the groups")
    parser.add_argument("--only", default="", help=f"groups, separated by commas: {', '.join(GROUPS)}")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds for each group")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "sanitize", help="for code and reports")
    parser.add_argument("--json", type=Path, help="where the record goes")
    given = parser.parse_args(words)
    sanitizer, folder = SANITIZERS[given.name], given.folder.resolve() / given.name
    if lack := _lack(sanitizer):
        _tell(f"{given.name}: {lack}")
        return MISSING
    if problem := _untrue(sanitizer, folder):
        _tell(f"{given.name}: {problem}")
        return 1
    groups = OPENCL if sanitizer.device == "opencl" else GROUPS
    only = [word.strip() for word in given.only.split(",") if word.strip()] or list(groups)
    rows = [_tested(sanitizer, folder, group, groups[group][given.full], given.limit) for group in only]
    _show(given.name, rows)
    if given.json:
        record = {"case": f"sanitize-{given.name}", "full": given.full, "groups": rows}
        given.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return int(any(row["reports"] or row["failed"] or row["note"] for row in rows))


def _tell(line: str) -> None:
    """Write a line of what the command says."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _show(name: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print the table, and the reports."""
    _tell(f"{name} sanitizer; the planted fault was reported")
    _tell(f"{'group':18} {'tests':>7} {'failed':>7} {'skipped':>8} {'reports':>8} {'seconds':>8}")
    for row in rows:
        numbers = row["passed"] + row["failed"], row["failed"], row["skipped"], sum(row["reports"].values())
        _tell(f"{row['group']:18} {numbers[0]:7} {numbers[1]:7} {numbers[2]:8} {numbers[3]:8} {row['seconds']:8}  "
              f"{row['note']}")  # fmt: skip
    for row in rows:
        for text, count in row["reports"].items():
            _tell(f"{row['group']}: {count} x {text}")


def _library(name: str) -> str:
    """Return where gcc finds a library; empty if it has none."""
    words = ["gcc", f"-print-file-name={name}"]
    found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    return found if os.path.isabs(found) else ""


def _archer() -> str:
    """Return the library by which clang's OpenMP runtime tells ThreadSanitizer who waits for whom; empty without it."""
    program = shutil.which("clang")
    found = Path(program).resolve().parents[1] / "lib" / "libarcher.so" if program else None
    return str(found) if found and found.exists() else ""


def _lack(sanitizer: Sanitizer) -> str:
    """Return what this machine lacks; empty if nothing."""
    for program in ("gcc", sanitizer.compiler, *(("oclgrind",) if sanitizer.device == "opencl" else ())):
        if not shutil.which(program):
            return f"there is no {program} (Debian, Ubuntu: apt install {program})"
    missing = [name for name in sanitizer.preloaded if not _library(name)]
    if missing:
        return f"gcc has no {', '.join(missing)}"
    if sanitizer.compiler == "clang" and not _archer():
        return "clang has no libarcher.so (Debian, Ubuntu: apt install libomp-dev)"
    return ""


def _environment(sanitizer: Sanitizer, folder: Path, log: Path) -> dict[str, str]:
    """Return the environment of a process whose native code reports to files that begin with ``log``."""
    found = {name: value for name, value in os.environ.items() if not name.startswith("FLUXLOOM_")}
    if sanitizer.device == "opencl":
        return found | {"FLUXLOOM_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    return found | {
        "FLUXLOOM_CC": sanitizer.compiler,
        "FLUXLOOM_CFLAGS": f"{_PLAIN} {sanitizer.flags}",
        "FLUXLOOM_CACHE": str(folder / "cache"),
        "LD_PRELOAD": " ".join(_library(name) for name in sanitizer.preloaded),
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(ROOT),
        "OMP_TOOL_LIBRARIES": _archer() if sanitizer.compiler == "clang" else "",
        sanitizer.options: f"log_path={log}:{sanitizer.option_text}",
    }  # fmt: skip


def _start(sanitizer: Sanitizer, log: Path, words: Sequence[str]) -> list[str]:
    """Return a command without random addresses, which may lie where ThreadSanitizer has its tables."""
    if sanitizer.device == "opencl":
        return ["oclgrind", "--log", f"{log}.0", sys.executable, *words]
    alone = shutil.which("setarch")
    return [*([alone, platform.machine(), "-R"] if alone else []), sys.executable, *words]


def _untrue(sanitizer: Sanitizer, folder: Path) -> str:
    """Return why the silence of a sanitizer would mean nothing here; empty if it reports the planted fault alone."""
    for faulty in (True, False):
        log = folder / "reports" / f"planted-{int(faulty)}"
        _clear(log)
        words = ["-m", "fluxloom_lab.attack.planted_c", sanitizer.device, str(int(faulty))]
        words = _start(sanitizer, log, words)
        done = subprocess.run(words, cwd=ROOT, env=_environment(sanitizer, folder, log), capture_output=True, text=True,
                              check=False)  # fmt: skip
        found = reports(log)
        told = done.stderr.strip()[-2000:]
        if faulty and not any(sanitizer.fault in text for text in found):
            return f"the planted fault is not reported ({dict(found)}): {told}"
        if not faulty and (found or done.returncode):
            return f"without a fault there are reports {dict(found)}: {told}"
    return ""


def _clear(log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    for path in log.parent.glob(f"{log.name}.*"):
        path.unlink()


def reports(log: Path) -> Counter[str]:
    """Return the reports in the files that begin with a path, without their addresses, and how often each occurs."""
    found: Counter[str] = Counter()
    for path in sorted(log.parent.glob(f"{log.name}.*")):
        text = path.read_text(encoding="utf-8", errors="replace")
        parts = r"^=+$" if "Sanitizer" in text else r"^(?=Invalid )" if "Invalid " in text else r"\n"
        for report in re.split(parts, text, flags=re.MULTILINE):
            if said := _REPORT.search(report):
                place = re.search(r"\w[\w-]*\.c:\d+|Kernel: *\w+", report)
                found[f"{_ADDRESS.sub('', said[1]).strip()} at {place[0] if place else '?'}"] += 1
    return found


def _tested(sanitizer: Sanitizer, folder: Path, group: str, tests: Sequence[str], limit: float) -> dict[str, Any]:
    """Run the tests of a group; return the row of the table."""
    log = folder / "reports" / group.replace(" ", "-")
    _clear(log)
    chosen = "opencl" if sanitizer.device == "opencl" else "not opencl"
    words = _start(sanitizer, log, ["-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", "-k", chosen, *tests])
    begin, note = time.monotonic(), ""
    output = folder / f"{log.name}.txt"
    with output.open("w", encoding="utf-8") as file:
        try:
            status = subprocess.run(words, cwd=ROOT, env=_environment(sanitizer, folder, log), stdout=file,
                                    stderr=subprocess.STDOUT, timeout=limit, check=False).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            status, note = 0, f"ended after {limit:.0f} s"
    text = output.read_text(encoding="utf-8", errors="replace")
    last = text.strip().rpartition("\n")[2]
    numbers = Counter({word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|skipped|error)", last)})
    if note:
        letters = Counter("".join(re.findall(r"^([.sFEx]+)(?: +\[ *\d+%\])?$", text, re.MULTILINE)))
        numbers = Counter(passed=letters["."], failed=letters["F"], error=letters["E"], skipped=letters["s"])
    if status not in (0, 1):
        note = f"status {status}: see {output}"
    return {
        "group": group, "passed": numbers["passed"], "failed": numbers["failed"] + numbers["error"],
        "skipped": numbers["skipped"], "reports": dict(reports(log)),
        "seconds": round(time.monotonic() - begin), "note": note,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
