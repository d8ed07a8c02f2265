"""``fluxloom lab faults``: runs are killed, interrupted, starved of memory and disk, and go on.

A trial takes a small case, runs it once without a fault, then again with faults, each time by the same command, until
it comes to its end. What it left is compared with the first run.
"""

from __future__ import annotations

from fluxloom.machine import gpus
from fluxloom_lab.attack.frame import Attack, Attacks
from fluxloom_lab.attack.kills import compiling, copies, devices, instants, lost_rank, ranks, signals, writing
from fluxloom_lab.attack.machines import clock, disk, memory, no_mounts, read_only, two_runs, vanishing
from fluxloom_lab.attack.runs import no_ranks
from fluxloom_lab.problems.small.state_cases import SOLVERS

__all__ = ["FAULTS"]

_SECONDS = 600.0


def _no_device() -> str:
    problems = [survey().problem for survey in (gpus.opencl_survey, gpus.cuda_survey)]
    return "; ".join(problems) if all(problems) else ""


_ALL = len(SOLVERS)

FAULTS = Attacks(
    "runs that are killed and go on, and what machines do to them",
    (
        Attack("kills", instants, _ALL, _SECONDS),
        Attack("writing", writing, _ALL, _SECONDS),
        Attack("copies", copies, _ALL, _SECONDS),
        Attack("ranks", ranks, _ALL, _SECONDS, no_ranks),
        Attack("devices", devices, _ALL, _SECONDS, _no_device),
        Attack("compiling", compiling, 3, _SECONDS),
        Attack("signals", signals, _ALL, _SECONDS),
        Attack("lost-rank", lost_rank, 5, _SECONDS, no_ranks),
        Attack("memory", memory, _ALL, _SECONDS),
        Attack("disk", disk, _ALL, _SECONDS),
        Attack("read-only", read_only, 3, _SECONDS, no_mounts),
        Attack("vanishing", vanishing, 5, _SECONDS),
        Attack("two-runs", two_runs, 5, _SECONDS),
        Attack("clock", clock, 5, _SECONDS),
    ),
)
