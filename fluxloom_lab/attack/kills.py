"""Runs that are killed or interrupted, once to six times, and go on by the same command."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from fluxloom.cli.main import main
from fluxloom.machine import gpus
from fluxloom_lab.attack.frame import Trial
from fluxloom_lab.attack.runs import Place, Process, Results, SmallCase, no_ranks, saved_steps
from fluxloom_lab.attack.trapped import Trap
from fluxloom_lab.problems.small.state_cases import CASES, DEVICES, RANKS, SOLVERS

__all__ = ["Course", "compiling", "copies", "devices", "instants", "lost_rank", "ranks", "signals", "writing"]

_EVERY = 2
_MOST = 6
_COPIES = 20
"""Steps between two checkpoints; kills of a trial; copies of the folder that a short trial goes on from."""

WHOLE, PARTS = "whole", "parts"


class Course:
    """One trial: a case, its run without a fault, and how far the run with faults has come.

    Parameters
    ----------
    trial
        Whose seed chooses the case: seeds that follow each other take all of them in turn.
    place
        Where the run without a fault is.
    names
        Cases to choose from.
    grade
        Of what repeats, as ``run.schedule`` takes it.
    """

    def __init__(
        self, trial: Trial, place: Place | None = None, names: tuple[str, ...] = SOLVERS, grade: str = "plan"
    ) -> None:
        if trial.full and names is SOLVERS:
            names = tuple(CASES)
        self.trial, self.random, self.name = trial, trial.random(), names[(trial.seed - 1) % len(names)]
        self.steps = self.random.randint(20, 40)
        changes = {"run.schedule": f"deterministic={grade}", "checkpoint": {"every": _EVERY}}
        steps = () if self.name.startswith("tsunami") else ("-n", str(self.steps))  # its steps are parts of a time
        self.case, self.place = SmallCase(self.name, changes, steps), place or Place()
        self.saved = -1
        process = self.case.start(WHOLE, self.place, trap=Trap(_path(WHOLE), "count", log=_path("changes")))
        status = process.wait(300.0)
        if status:
            raise RuntimeError(f"the run without a fault ended with {status}: {process.said[-400:]}")
        self.seconds, self.whole = time.monotonic() - process.begin, Results.read(Path(WHOLE))
        self.changes = int(Path("changes").read_text())

    def start(self, place: Place | None = None, *, trap: Trap | None = None, cache: str = "") -> Process:
        """Start the run with faults, or let it go on."""
        return self.case.start(PARTS, place or self.place, trap=trap, cache=cache)

    def wait(self, process: Process) -> None:
        """Wait until a random instant: of the whole run, or of its steps."""
        if self.random.random() < 0.3:
            begin = time.monotonic()
            instant = self.random.uniform(0.0, self.seconds)
            while time.monotonic() - begin < instant and not process.over:
                time.sleep(0.002)
            return
        lines = self.random.randint(1, self.steps)
        table = Path(PARTS) / "residual.csv"
        while not process.over and _lines(table) <= lines:
            time.sleep(0.002)
        time.sleep(self.random.uniform(0.0, 0.01))

    def after(self, process: Process) -> Iterator[str]:
        """Yield what is wrong behind a fault."""
        yield from _traceback(process.said)
        if (found := saved_steps(Path(PARTS))) < self.saved:
            yield f"a checkpoint is lost: step {self.saved} was saved, now {found}"
        self.saved = found

    def end(self, bound: float = 0.0, place: Place | None = None, cache: str = "") -> Iterator[str]:
        """Let the run come to its end; yield what is wrong then."""
        process = self.start(place, cache=cache)
        status = process.wait(300.0)
        yield from self.ended(status, process.said, Path(PARTS), bound)

    def ended(self, status: int, said: str, folder: Path, bound: float = 0.0) -> Iterator[str]:
        """Yield what is wrong with a run that has come to its end in a folder."""
        yield from _traceback(said)
        if status:
            yield f"the last run ended with {status}: {said[-400:]}"
            return
        if self.saved >= 0 and f"resumed from step {self.saved:,}" not in said and "at its end already" not in said:
            yield f"not resumed from step {self.saved}: {said[-400:]}"
        for text in self.whole.differences(Results.read(folder), bound):
            yield f"{self.name}: {text}"


def _path(name: str) -> str:
    return str(Path(name).resolve())


def _lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except OSError:
        return 0


def _traceback(said: str) -> Iterator[str]:
    if "Traceback" in said:
        yield f"a traceback: {said[-600:]}"


def _killed(course: Course, fault: Callable[[Random], tuple[Place, Trap | None]]) -> Iterator[str]:
    """Kill the run once to six times, at a place and by a trap, or at an instant where there is no trap."""
    for _ in range(course.random.randint(1, _MOST)):
        place, trap = fault(course.random)
        process = course.start(place, trap=trap)
        if trap is None:
            course.wait(process)
            ended = process.over
            process.kill()
            process.wait()
        else:
            ended = process.wait(300.0) == 0
        course.trial.counts["ended before" if ended else "kills"] += 1
        yield from course.after(process)
        if ended:
            return


def instants(trial: Trial) -> Iterator[str]:
    """Kill at random instants; the bits are those of the run without a fault."""
    course = Course(trial)
    yield from _killed(course, lambda random: (course.place, None))
    yield from course.end()


def writing(trial: Trial) -> Iterator[str]:
    """Kill when the folder is changed: before a file is opened, flushed, renamed, removed, or up to 10 ms later."""
    course = Course(trial)

    def fault(random: Random) -> tuple[Place, Trap]:
        later = random.choice((0.0, random.uniform(1e-4, 1e-2)))
        return course.place, Trap(_path(PARTS), "kill", random.randint(1, course.changes), later)

    yield from _killed(course, fault)
    yield from course.end()


def copies(trial: Trial) -> Iterator[str]:
    """Go on from what a kill before each change of the folder would leave; without new processes."""
    course = Course(trial)
    process = course.start(trap=Trap(_path(PARTS), "copy"))
    if process.wait(300.0):
        raise RuntimeError(f"the run that is copied has failed: {process.said[-400:]}")
    found = sorted(Path(f"{PARTS}-copies").iterdir())
    if not trial.full:
        found = sorted(course.random.sample(found, min(_COPIES, len(found))))
    for folder in found:
        if (saved := saved_steps(folder)) < course.saved:
            yield f"a checkpoint is lost in {folder.name}: step {course.saved} was saved, now {saved}"
        course.saved = saved
        trial.counts["kills"] += 1
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = main([*course.case.command(str(folder)), *course.place.words])
        yield from (f"{folder.name}: {text}" for text in course.ended(status, said.getvalue(), folder))


def ranks(trial: Trial) -> Iterator[str]:
    """Kill on one to three ranks, at random instants and when the folder is changed, each time on others."""
    course = Course(trial, names=tuple(RANKS), grade="global")

    def fault(random: Random) -> tuple[Place, Trap | None]:
        place, later = Place(random.randint(1, 3)), random.uniform(0.0, 1e-2)
        trap = Trap(_path(PARTS), "kill", random.randint(1, course.changes), later)
        return place, random.choice((trap, None))

    yield from _killed(course, fault)
    yield from course.end(RANKS[course.name], Place(course.random.randint(1, 3)))


def devices(trial: Trial) -> Iterator[str]:
    """Kill on one device, and go on with another."""
    found = [name for name, survey in (("opencl", gpus.opencl_survey), ("cuda", gpus.cuda_survey))
             if not survey().problem]  # fmt: skip
    course = Course(trial, names=tuple(DEVICES))

    def place(random: Random) -> Place:
        return Place(1, random.choice(["cpu", *found]))

    yield from _killed(course, lambda random: (place(random), None))
    yield from course.end(DEVICES[course.name], place(course.random))


def compiling(trial: Trial) -> Iterator[str]:
    """Kill while loops are compiled, with an empty cache of compiled code."""
    course = Course(trial)
    cache = _path("cache")
    for _ in range(course.random.randint(1, 3)):
        process = course.start(cache=cache)
        begin, instant = time.monotonic(), course.random.uniform(0.2, 1.0) * course.seconds
        while time.monotonic() - begin < instant and not process.over:
            time.sleep(0.002)
        process.kill()
        process.wait()
        trial.counts["kills"] += 1
        yield from course.after(process)
    yield from course.end(cache=cache)


_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _written() -> int:
    """Return when the record was written; a run that begins or goes on writes it."""
    path = Path(PARTS) / "run.json"
    return path.stat().st_mtime_ns if path.exists() else 0


def signals(trial: Trial) -> Iterator[str]:
    """Interrupt once to three times, on one or two ranks: the exit status is that of the signal, and all is saved."""
    random = trial.random()
    place = Place(1 if no_ranks() else random.choice((1, 1, 2)))
    course = Course(trial, place, tuple(RANKS) if place.ranks > 1 else SOLVERS)
    for _ in range(course.random.randint(1, 3)):
        number = course.random.choice(_SIGNALS)
        before, process = _written(), course.start()
        course.wait(process)
        begun = not process.over and _written() != before
        marched = begun and _lines(Path(PARTS) / "residual.csv") > 1
        os.kill(process.process.pid, number)
        status = process.wait(120.0)
        trial.counts[number.name] += 1
        if "KeyboardInterrupt" in process.said and ", in main\n" not in process.said:
            continue  # Python itself was just starting
        if status not in (0, 128 + number, -number) or (status < 0 and begun):
            yield f"{number.name} ended the run with {status}: {process.said[-400:]}"
        yield from course.after(process)
        if status == 128 + number and marched and course.saved < 0:
            yield f"{number.name}: no checkpoint: {process.said[-400:]}"
    yield from course.end()


def lost_rank(trial: Trial) -> Iterator[str]:
    """Kill one of two or three ranks: the others end too, and the run goes on."""
    place = Place(trial.random().randint(2, 3))
    course = Course(trial, place, tuple(RANKS))
    for _ in range(course.random.randint(1, 3)):
        process = course.start()
        course.wait(process)
        members = process.ranks()
        if process.over or len(members) < place.ranks:
            continue
        os.kill(course.random.choice(members), signal.SIGKILL)
        status = process.wait()
        trial.counts["kills"] += 1
        if not status:
            yield f"a lost rank, and the run ended with 0: {process.said[-400:]}"
        yield from course.after(process)
    yield from course.end()
