"""Runs a case file with bits that do not depend on the number of ranks: all loops of the context have that grade.

    python bench/gpu_jobs/global_run.py run CASE --ranks "cuda*4" --output FOLDER

Case files of most solvers leave the schedules of their loops to the solver; here the context has another default.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import fluxloom.app.cli.run as application
from fluxloom.app.ranks import VARIABLE, find_starter, parse, without_ranks
from fluxloom.dsl.context import Context
from fluxloom.dsl.schedule import Schedule


def main() -> int:
    """Start the ranks, or be one of them."""
    words = sys.argv[1:]
    if "--ranks" in words:
        ranks = parse(words[words.index("--ranks") + 1])
        starter = find_starter()
        environment = starter.environment() | {VARIABLE: ",".join(map(str, ranks))}
        command = starter.command(len(ranks), [__file__, *without_ranks(words)])
        return subprocess.run(command, env=environment, check=False).returncode
    from fluxloom.app.cli.main import main as fluxloom

    application.Context = partial(Context, schedule=Schedule(deterministic="global"))  # type: ignore[misc,assignment]
    sys.argv = ["fluxloom", *words]
    fluxloom()
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
