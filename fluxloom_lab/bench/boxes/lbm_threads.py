"""The benchmark ``lbm`` on several numbers of threads, close together and spread, each as a process of its own.

Where threads are kept is settled when a program starts (``OMP_PROC_BIND`` and ``OMP_PLACES`` of OpenMP 4).
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fluxloom.cases.files.case import schedule_text
from fluxloom.comm.launchers import without_launcher
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom_lab.bench.base import Tell
from fluxloom_lab.bench.boxes.lbm_choice import Choice, LbmOptions
from fluxloom_lab.peers.programs import run_program

__all__ = ["BINDINGS", "child_words", "numbers_of_threads", "scaling_rows", "sweep_threads"]

Row = dict[str, Any]

BINDINGS = ("close", "spread")
_FEW = 8


def numbers_of_threads(most: int) -> list[int]:
    """Return the numbers of threads to measure: all up to eight, else powers of two, three quarters and all."""
    if most <= _FEW:
        return list(range(1, most + 1))
    powers = [1 << k for k in range(most.bit_length()) if 1 << k < most]
    return sorted({*powers, 3 * most // 4, most})


def sweep_threads(options: LbmOptions, choice: Choice, most: int, count: int, rounds: int, tell: Tell) -> list[Row]:
    """Return a row for each number of threads and each way to place them.

    Parameters
    ----------
    most
        The largest number.
    count, rounds
        Steps a round, and timed rounds.

    Raises
    ------
    FluxloomError
        If a process fails.
    """
    rows: list[Row] = []
    for threads in numbers_of_threads(most):
        for binding in BINDINGS if threads > 1 else BINDINGS[:1]:
            record = _record(child_words(options, choice, threads, count, rounds), binding)
            metrics = record["metrics"]
            rows.append({
                "threads": metrics["threads"], "binding": binding, "mlups": metrics["mlups"],
                "copy_gbs": record["copy_gbs"], "percent_of_copy": metrics["percent_of_copy"],
                "ms_per_step": metrics["ms_per_step"],
            })  # fmt: skip
            tell(f"{threads} threads, {binding}: {metrics['mlups']:,.1f} MLUPS, copy {record['copy_gbs']:.1f} GB/s")
    return scaling_rows(rows)


def child_words(options: LbmOptions, choice: Choice, threads: int, count: int, rounds: int) -> list[str]:
    """Return the command line of one process, but for the file of its record."""
    words = ["bench", "lbm", "--device", "cpu", "--threads", str(threads), "-n", str(count), "--rounds", str(rounds)]
    named = {
        "--cells": options.cells, "--schedule": schedule_text(options.schedule), "--precision": choice.precision,
        "--layout": choice.layout, "--lattice": choice.lattice, "--collision": choice.collision,
        "--streaming": choice.streaming, "--force": choice.force,
    }  # fmt: skip
    usual = asdict(Choice()) | {"schedule": schedule_text(Schedule())}
    for name, value in named.items():
        if value and value != usual.get(name.removeprefix("--")):
            words += [name, value]
    return words + ["--walls"] * choice.walls


def _record(words: list[str], binding: str) -> Row:
    """Return the record of one process."""
    with TemporaryDirectory(prefix="fluxloom-lbm-") as folder:
        path = Path(folder) / "record.json"
        run_program(
            [sys.executable, "-m", "fluxloom", *words, "--json", str(path)], name=f"bench lbm ({binding})",
            environment=without_launcher() | {"OMP_PROC_BIND": binding, "OMP_PLACES": "cores"},
        )  # fmt: skip
        return json.loads(path.read_text(encoding="utf-8"))


def scaling_rows(rows: list[Row]) -> list[Row]:
    """Return the rows with the speed-up over one thread, and that over the number of threads."""
    one = next(row["mlups"] for row in rows if row["threads"] == 1)
    return [row | {"speedup": row["mlups"] / one, "efficiency": row["mlups"] / one / row["threads"]} for row in rows]
