"""The command line with a trap: something happens when it changes a folder for the n-th time.

``python -m fluxloom_lab.attack.trapped run CASE -o DIR`` with `Trap.environment` in the environment. A change is a file
opened for writing, flushed to the disk, renamed, linked, cut off or removed, or a folder made.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

__all__ = ["Trap", "main"]

VARIABLE = "FLUXLOOM_TRAP"
_CHANGES = frozenset({"os.rename", "os.remove", "os.link", "os.truncate", "os.mkdir"})
_WRITES = os.O_WRONLY | os.O_RDWR


@dataclass(frozen=True)
class Trap:
    """What happens, and when.

    Attributes
    ----------
    folder
        Whose changes are counted.
    act
        ``"kill"``, ``"memory"`` (the address space may grow by so many bytes), ``"size"`` (no file may grow above so
        many bytes), ``"vanish"`` (the folder is moved away), ``"clock"`` (the clock jumps at every call), ``"count"``,
        ``"copy"`` (before every change the folder is copied, as a kill would leave it: to ``DIR-copies/00001`` ...).
    at
        Number of the change before which it happens.
    amount
        Bytes; of ``"kill"`` seconds from then on; of ``"clock"`` the seed.
    log
        File that gets the number of changes at the end; empty: none.
    """

    folder: str
    act: str
    at: int = 0
    amount: float = 0.0
    log: str = ""

    def environment(self) -> dict[str, str]:
        """Return the variables of the environment that lay the trap."""
        return {VARIABLE: json.dumps(asdict(self))}

    def snap(self) -> None:
        """Let it happen."""
        if self.act == "kill":
            if not self.amount:
                os.kill(os.getpid(), signal.SIGKILL)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process as SIGKILL does: nothing is tidied up
            signal.setitimer(signal.ITIMER_REAL, self.amount)
        elif self.act == "memory":
            _grow_stack()
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most = pages * resource.getpagesize() + int(self.amount)
            resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        elif self.act == "size":
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(self.amount), resource.RLIM_INFINITY))
        elif self.act == "vanish":
            os.rename(self.folder, f"{self.folder}.gone")


class _Watch:
    """Counts changes of a folder."""

    def __init__(self, trap: Trap) -> None:
        self.trap, self.count, self._snapping = trap, 0, False

    def seen(self, event: str, words: tuple[Any, ...]) -> None:
        """Take note of an audited event."""
        if event == "open":
            path, _, flags = words
            if not isinstance(flags, int) or not flags & _WRITES:
                return
        elif event in _CHANGES:
            path = words[0]
        else:
            return
        if isinstance(path, str | bytes | os.PathLike) and self._inside(path):
            self.changes()

    def _inside(self, path: str | bytes | os.PathLike[str]) -> bool:
        return os.path.abspath(os.fsdecode(path)).startswith(f"{self.trap.folder}{os.sep}")

    def changes(self) -> None:
        """Take note of a change."""
        if self._snapping:
            return
        self.count += 1
        self._snapping = True
        if self.trap.act == "copy":
            shutil.copytree(self.trap.folder, f"{self.trap.folder}-copies/{self.count:05d}", dirs_exist_ok=True)
        elif self.count == self.trap.at:
            self.trap.snap()
        self._snapping = False


def _grow_stack(depth: int = 2000) -> None:
    """Make the stack 1 MB deep: the system kills a process whose stack cannot grow, and no program can do anything."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + 4 * depth)

    def deeper(left: int) -> int:
        return max([left], key=lambda number: deeper(number - 1)) if left else 0

    deeper(depth)
    sys.setrecursionlimit(before)


def _jumping(seed: float) -> Callable[[], float]:
    """Return a clock that jumps by up to a day with every call."""
    random, clock = Random(seed), time.time
    return lambda: clock() + random.uniform(-86400.0, 86400.0)


def main() -> int:
    """Lay the trap, and run the command line."""
    trap = Trap(**json.loads(os.environ[VARIABLE]))
    watch = _Watch(trap)
    if trap.act == "clock":
        time.time = _jumping(trap.amount)
    flush = os.fsync

    def flushed(number: Any) -> None:
        watch.changes()
        flush(number)

    os.fsync = flushed
    sys.addaudithook(watch.seen)
    from fluxloom.cli.main import main as command_line

    status = command_line(sys.argv[1:])
    if trap.log:
        Path(trap.log).write_text(str(watch.count))
    return status


if __name__ == "__main__":
    sys.exit(main())
