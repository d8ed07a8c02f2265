"""Kills one of several ranks of a run with checkpoints, takes the time until all have ended, and goes on with fewer.

    python bench/gpu_jobs/faults.py cuda 4 FILE.json
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SIDE, STEPS = 64, 400

_CASE = """
[case]
name = "faults"
solver = "incompressible"

[mesh]
x = [0.0, 6.283185307179586]
y = [0.0, 6.283185307179586]
z = [0.0, 6.283185307179586]
nx = {n}
ny = {n}
nz = {n}
periodic = [["xmin", "xmax"], ["ymin", "ymax"], ["zmin", "zmax"]]

[fluid]
viscosity = 6.25e-4

[initial]
velocity_x = "sin(x) * cos(y) * cos(z)"
velocity_y = "-cos(x) * sin(y) * cos(z)"

[pressure]
preconditioner = "jacobi"
rtol = 1e-6

[time]
dt = 0.005

[history]
every = 10

[checkpoint]
every = 20

[run]
iterations = {steps}
report_every = 50

[partition]
method = "rcb"

[output]
format = "none"
picture = false
"""


def ranks_below(launcher: int) -> list[int]:
    """Return the processes that a launcher has started and that run fluxloom."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, below = [], [launcher]
    while below:
        children = parents.get(below.pop(), [])
        below += children
        found += children
    ranks = []
    for process in found:
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if "python" in Path(words[0]).name and "fluxloom" in words:
            ranks.append(process)
    return sorted(ranks)


def alive(process: int) -> bool:
    """Whether a process runs, and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def place(device: str, ranks: int) -> list[str]:
    """Return the options of so many ranks."""
    return ["--ranks", f"{device}*{ranks}" if device == "cuda" else f"cpu:1*{ranks}"]


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def main() -> None:
    """Do it, and write what came of it."""
    device, count, target = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    n, steps = (SIDE, STEPS) if device == "cuda" else (16, 200)
    found: dict[str, Any] = {"case": "faults", "device": device, "ranks": count, "cells": n**3, "steps": steps}
    with tempfile.TemporaryDirectory() as folder:
        case, out = Path(folder) / "case.toml", Path(folder) / "out"
        case.write_text(_CASE.format(n=n, steps=steps))
        words = [sys.executable, "-m", "fluxloom", "run", str(case), "--output", str(out)]
        whole = Path(folder) / "whole"
        done = run([*words[:-1], str(whole), *place(device, count)])
        found["whole_status"] = done.returncode
        for number in (count - 1, 0):
            process = subprocess.Popen([*words, *place(device, count)], cwd=ROOT, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)  # fmt: skip
            saved = wait_for_checkpoint(out, process)
            ranks = ranks_below(process.pid)
            ranks = ranks[-count:]
            begin = time.monotonic()
            os.kill(ranks[number], signal.SIGKILL)
            while any(alive(one) for one in [*ranks, process.pid]) and time.monotonic() - begin < 60:
                process.poll()
                time.sleep(0.02)
            seconds = time.monotonic() - begin
            found[f"killed_rank_{number}"] = {
                "checkpoint": saved, "ranks": len(ranks), "seconds_until_all_ended": seconds, "status": process.poll(),
                "still_alive": sum(alive(one) for one in ranks),
            }  # fmt: skip
            print(found[f"killed_rank_{number}"], flush=True)
            fewer = max(1, count // 2)
            done = run([*words, *place(device, fewer)])
            record = json.loads((out / "run.json").read_text())
            rows = [path.read_text().strip().splitlines()[-1] for path in (whole / "history.csv", out / "history.csv")]
            found[f"killed_rank_{number}"] |= {
                "resumed_on": fewer, "resumed_status": done.returncode, "resumed_ranks": record["ranks"],
                "resumed_iterations": record["iterations"], "last_row_whole": rows[0], "last_row_resumed": rows[1],
                "resumed_said": [line for line in done.stdout.splitlines() if "checkpoint" in line],
            }  # fmt: skip
            print(found[f"killed_rank_{number}"], flush=True)
            for path in out.glob("*"):
                path.unlink() if path.is_file() else None
    target.write_text(json.dumps(found, indent=1))


def wait_for_checkpoint(out: Path, process: subprocess.Popen[str]) -> str:
    """Return the name of the first checkpoint, when it is there."""
    begin = time.monotonic()
    while time.monotonic() - begin < 90 and process.poll() is None:
        for path in out.glob("checkpoint*"):
            if path.suffix != ".part":
                return path.name
        time.sleep(0.05)
    said = process.stderr.read() if process.stderr and process.poll() is not None else ""
    raise SystemExit(f"no checkpoint after {time.monotonic() - begin:.0f} s: {said}")


if __name__ == "__main__":
    main()
