"""What machines do to runs: no memory, no room, folders that go, a clock that jumps, and two runs in one folder."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from fluxloom_lab.attack.frame import Trial
from fluxloom_lab.attack.kills import PARTS, WHOLE, Course
from fluxloom_lab.attack.runs import Process
from fluxloom_lab.attack.trapped import Trap

__all__ = ["clock", "disk", "memory", "no_mounts", "read_only", "two_runs", "vanishing"]

_NEW_MOUNTS = 0x00020000
"""``CLONE_NEWNS``: mounts of this process end with it."""


def no_mounts() -> str:
    """Return why nothing can be mounted here; empty: it can."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        return "mounting is not allowed"
    return ""


def _mount(size: str, place: Path) -> None:
    """Mount a file system in memory for this process and those that it starts."""
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS):
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place], check=True)


def _remount(options: str, place: Path) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", place], check=True)


def _told(process: Process, allowed: tuple[int, ...] = (0, 1, 2, 3)) -> Iterator[str]:
    """Yield what is wrong with the end of a run that something was missing."""
    status, said = process.wait(300.0), process.said
    if status not in allowed:
        yield f"ended with {status}: {said[-600:]}"
    elif status and "Traceback" not in said and not any(word in said for word in ("error", "lost", "status")):
        yield f"ended with {status}, and nothing is said: {said[-600:]}"


def memory(trial: Trial) -> Iterator[str]:
    """Let the address space grow by little from a change of the folder on."""
    course = Course(trial)
    for _ in range(course.random.randint(1, 3)):
        at = course.random.choice((1, 2, 3, course.random.randint(1, course.changes)))
        process = course.start(trap=Trap(_absolute(PARTS), "memory", at, 2.0 ** course.random.uniform(12.0, 27.0)))
        yield from _told(process)
        trial.counts["runs"] += 1
        trial.counts["ended"] += process.process.returncode == 0
        yield from course.after(process)
    yield from course.end()


def disk(trial: Trial) -> Iterator[str]:
    """Give the run less room than it needs, then enough."""
    course = Course(trial)
    need = sum(path.stat().st_size for path in Path(WHOLE).iterdir())
    mounts = not no_mounts()
    if mounts:
        _mount("4k", Path(PARTS))
    for _ in range(course.random.randint(1, 3)):
        size = int(need * course.random.uniform(0.02, 1.2))
        at = course.random.randint(1, course.changes)
        if mounts:
            used = sum(path.stat().st_blocks * 512 for path in Path(PARTS).iterdir())
            _remount(f"size={max(size, used + 4096) // 1024}k", Path(PARTS))
        trap = None if mounts else Trap(_absolute(PARTS), "size", at, size / 4)
        process = course.start(trap=trap)
        yield from _told(process)
        trial.counts["runs"] += 1
        trial.counts["ended"] += process.process.returncode == 0
        yield from course.after(process)
    if mounts:
        _remount("size=64m", Path(PARTS))
    yield from course.end()


def read_only(trial: Trial) -> Iterator[str]:
    """Let the folder allow no writing: the run is refused, and goes on when it may."""
    course = Course(trial)
    _mount("64m", Path(PARTS))
    process = course.start(trap=Trap(_absolute(PARTS), "kill", course.random.randint(1, course.changes)))
    process.wait(300.0)
    yield from course.after(process)
    _remount("ro", Path(PARTS))
    process = course.start()
    yield from _told(process, (2,) if process.wait(300.0) else (0,))
    yield from course.after(process)
    _remount("rw", Path(PARTS))
    yield from course.end()


def vanishing(trial: Trial) -> Iterator[str]:
    """Move the folder away, or remove it, while the run writes; then begin again."""
    course = Course(trial)
    at = course.random.randint(1, course.changes)
    if course.random.random() < 0.5:
        process = course.start(trap=Trap(_absolute(PARTS), "vanish", at))
    else:
        process = course.start()
        course.wait(process)
        shutil.rmtree(PARTS, ignore_errors=True)
    yield from _told(process)
    if "Traceback" in process.said:
        yield f"a traceback: {process.said[-600:]}"
    trial.counts["runs"] += 1
    shutil.rmtree(PARTS, ignore_errors=True)
    yield from course.end()


def two_runs(trial: Trial) -> Iterator[str]:
    """Start two or three runs in one folder: one has it, the others are refused, or find it done."""
    course = Course(trial)
    processes: list[Process] = []
    for _ in range(course.random.randint(2, 3)):
        processes.append(course.start())
        time.sleep(course.random.choice((0.0, course.random.uniform(0.0, course.seconds))))
    statuses = [process.wait(300.0) for process in processes]
    trial.counts["runs"] += len(statuses)
    trial.counts["refused"] += statuses.count(2)
    for process, status in zip(processes, statuses, strict=True):
        if status == 2 and "is writing results there" not in process.said:
            yield f"refused for another reason: {process.said[-400:]}"
        if status not in (0, 2) or "Traceback" in process.said:
            yield f"ended with {status}: {process.said[-600:]}"
    if 0 not in statuses:
        yield f"no run came to its end: {statuses}"
    yield from course.end()


def clock(trial: Trial) -> Iterator[str]:
    """Let the clock jump by up to a day at every call, in a run that is killed and goes on."""
    course = Course(trial)
    process = course.start(trap=Trap(_absolute(PARTS), "clock", amount=trial.seed))
    course.wait(process)
    process.kill()
    process.wait()
    yield from course.after(process)
    old = course.random.uniform(-1e8, 1e8)
    for path in Path(PARTS).glob("*"):
        os.utime(path, (time.time() + old, time.time() + old))
    process = course.start(trap=Trap(_absolute(PARTS), "clock", amount=trial.seed + 0.5))
    yield from _told(process, (0,))
    yield from course.end()


def _absolute(name: str) -> str:
    return str(Path(name).resolve())
