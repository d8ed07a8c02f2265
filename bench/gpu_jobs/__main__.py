"""Runs many benchmarks on a machine with several GPUs, one after the other and, where GPUs are left, side by side.

    python bench/gpu_jobs FOLDER [--limit SECONDS] [--gpus N] STEP...

Each job has GPUs of its own, as many cores as they are entitled to, and a time limit. Jobs begin in the order of the
list when enough GPUs are free; those on all of them come last in each step. Records go to FOLDER/records, what jobs
print to FOLDER/logs, and a table with efficiencies over one GPU to FOLDER/table.txt.

`--device cpu --small` tries the list out where there are no GPUs.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

from queue_of_jobs import Queue
from steps import STEPS, Settings
from table import table


def gpus_here() -> int:
    """Return how many GPUs the driver lists."""
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True)
    return len(listed.stdout.splitlines())


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("steps", nargs="+", choices=list(STEPS))
    parser.add_argument("--limit", type=float, default=3600.0)
    parser.add_argument("--gpus", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    count, folder = given.gpus or gpus_here(), given.folder.resolve()
    settings = Settings(folder, given.device, given.small, count)
    queue = Queue(folder, count, given.limit)
    jobs = [sorted(STEPS[name](settings), key=lambda job: job.gpus == count) for name in given.steps]
    queue.run([job for step in jobs for job in step])
    text = table(folder)
    (folder / "table.txt").write_text("\n".join([*queue.done, "", text, ""]), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
