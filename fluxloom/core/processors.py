"""How many processors a process may use: its affinity, the quota of its container, and what the user asks for."""

from __future__ import annotations

import math
import os
from pathlib import Path

from fluxloom.core.advice import warn

__all__ = ["available_processors", "default_threads", "quota"]

_MOST_THREADS = 65_536


def available_processors() -> int:
    """Return how many processors this process may use: those of its affinity, but no more than its `quota`."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    allowed = quota()
    return count if allowed is None else max(1, min(count, math.ceil(allowed)))


def quota(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> float | None:
    """Return the processors whose time control groups grant this process, as containers do; None: no limit.

    Of version 2, ``cpu.max`` of its group and of those above; of version 1, ``cpu.cfs_quota_us`` over the period.

    Parameters
    ----------
    root, own
        Where control groups are mounted, and which of them this process is in.
    """
    try:
        lines = [line.split(":", 2) for line in own.read_text(encoding="utf-8", errors="replace").splitlines()]
    except OSError:
        lines = []
    groups = [words[1:] for words in lines if len(words) == 3]
    paths = [name for parts, name in groups if not parts]
    found = [_ratio(folder / "cpu.max", None) for folder in _upward(root, paths)]
    first = [name for parts, name in groups if "cpu" in parts.split(",")]
    for folder in (*_upward(root / "cpu", first), *_upward(root / "cpu,cpuacct", first)):
        found.append(_ratio(folder / "cpu.cfs_quota_us", folder / "cpu.cfs_period_us"))
    return min((value for value in found if value is not None), default=None)


def _upward(root: Path, names: list[str]) -> list[Path]:
    """Return the folders of groups and of those above them; a container may see its own as the root."""
    out = [root]
    for name in names:
        folder = root / name.strip("/")
        while folder != root and root in folder.parents:
            out.append(folder)
            folder = folder.parent
    return out


def _ratio(limit: Path, period: Path | None) -> float | None:
    """Return what a quota is of its period; None where there is none."""
    try:
        words = limit.read_text(encoding="ascii").split()
        if period is not None:
            words = [*words[:1], period.read_text(encoding="ascii").strip()]
        time, whole = float(words[0]), float(words[1]) if len(words) > 1 else 100_000.0
    except (OSError, ValueError, IndexError):  # no such group, or "max"
        return None
    return time / whole if time > 0.0 and whole > 0.0 and math.isfinite(time / whole) else None


def default_threads() -> int:
    """Return the threads of a loop: the first number of ``OMP_NUM_THREADS``, or `available_processors`.

    A value that is no number of threads is told, and not used.
    """
    available, text = available_processors(), os.environ.get("OMP_NUM_THREADS", "")
    first = text.split(",")[0].strip()
    if not first:
        return available
    count = int(first) if first.isascii() and first.isdigit() and len(first) < 10 else 0
    if 1 <= count <= _MOST_THREADS:
        return count
    warn(f"OMP_NUM_THREADS={text!r} is no number of threads: {available} are used, as many as this process may use")
    return available
