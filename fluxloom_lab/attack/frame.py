"""The frame of all attacks: trials with a seed, each in a process of its own, and what they found.

A trial runs in an empty folder. It ends with the lines that it found, fails (an exception, a crash), or is ended after
its limit of seconds. Processes that it left are found and killed.
"""

from __future__ import annotations

import faulthandler
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import Any

from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom_lab.options import option

__all__ = ["Attack", "AttackOptions", "Attacks", "Finding", "Outcome", "Trial", "as_json", "attempt", "processes_of"]

MARK = "FLUXLOOM_TRIAL"
"""Variable of the environment by which processes of a trial are known."""

_POLL, _GRACE = 0.005, 2.0
_TAIL = 400
"""Seconds between two looks at trials, and in which processes of one may end; letters of the output of a failed one."""


@dataclass(frozen=True)
class Trial:
    """One trial, determined by its attack and its seed.

    Attributes
    ----------
    attack, seed
        What is tried, and the number from which its random numbers follow.
    full
        Whether the trial may be long.
    counts
        What the trial counts: kills, files.
    """

    attack: str
    seed: int
    full: bool = False
    counts: Counter[str] = field(default_factory=Counter)

    def random(self) -> Random:
        """Return a new generator of random numbers."""
        return Random(f"{self.attack} {self.seed}")


@dataclass(frozen=True)
class Attack:
    """One attack.

    Attributes
    ----------
    name
        As ``--only`` takes it.
    act
        Runs a trial in the working directory, which is empty; yields a line for each thing that is wrong.
    trials, seconds
        Usual number of trials; limit of each.
    missing
        Returns why the attack cannot be tried on this machine; empty: it can.
    """

    name: str
    act: Callable[[Trial], Iterable[str]]
    trials: int = 10
    seconds: float = 60.0
    missing: Callable[[], str] = str


@dataclass(frozen=True)
class AttackOptions:
    """What every group of attacks is given."""

    seed: int = option(1, metavar="N", help="Seed of the first trial; the next ones count on.", shown="1")
    trials: int = option(0, metavar="N", help="Trials of each attack; 0: as many as is usual.", least=0)
    jobs: int = option(1, metavar="N", help="Trials at a time.", least=1)
    only: str = option("", metavar="NAMES", help="Attacks, separated by commas; with * and ?.")
    full: bool = option(False, help="Long trials too.")


@dataclass(frozen=True)
class Attacks:
    """A group of attacks: one word behind ``fluxloom lab``.

    Attributes
    ----------
    title
        What is attacked.
    attacks
        The attacks.
    options
        What the command line takes.
    """

    title: str
    attacks: tuple[Attack, ...]
    options: type[AttackOptions] = AttackOptions

    def of(self, options: AttackOptions) -> list[Attack]:
        """Return the attacks that the options ask for."""
        return self.chosen(options.only)

    def chosen(self, only: str) -> list[Attack]:
        """Return the attacks that ``--only`` names; all if it is empty."""
        patterns = [word.strip() for word in only.split(",") if word.strip()]
        names = [attack.name for attack in self.attacks]
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in names):
                known = ", ".join(names)
                raise CaseError(f"--only: unknown attack {pattern!r}{did_you_mean(pattern, names)} (known: {known})")
        wanted = patterns or ["*"]
        return [attack for attack in self.attacks if any(fnmatchcase(attack.name, pattern) for pattern in wanted)]


@dataclass(frozen=True)
class Finding:
    """Something that is wrong.

    Attributes
    ----------
    seed
        Of the trial.
    text
        What is wrong.
    folder
        What the trial left.
    """

    seed: int
    text: str
    folder: str


@dataclass
class Outcome:
    """What became of an attack.

    Attributes
    ----------
    attack
        Its name.
    trials, seconds
        How many there were, and how long all together took.
    found
        What is wrong.
    counts
        What the trials counted.
    missing
        Why it was not tried.
    """

    attack: str
    trials: int = 0
    seconds: float = 0.0
    found: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    missing: str = ""


def attempt(attacks: Sequence[Attack], options: AttackOptions, tell: Callable[[str], object]) -> list[Outcome]:
    """Run the trials of attacks, some at a time, and return what became of each attack.

    Parameters
    ----------
    attacks
        In the order of the table.
    options
        How many trials, from which seed.
    tell
        Takes a line for each finding.
    """
    outcomes = [Outcome(attack.name, missing=attack.missing()) for attack in attacks]
    waiting = iter([
        (outcome, attack, Trial(attack.name, options.seed + number, options.full))
        for outcome, attack in zip(outcomes, attacks, strict=True) if not outcome.missing
        for number in range(options.trials or attack.trials)
    ])  # fmt: skip
    running: list[tuple[Outcome, _Process]] = []
    try:
        while True:
            while len(running) < options.jobs and (following := next(waiting, None)):
                outcome, attack, trial = following
                running.append((outcome, _Process(attack, trial)))
            if not running:
                return outcomes
            for outcome, process in [pair for pair in running if pair[1].over()]:
                _take(outcome, process, tell)
                running.remove((outcome, process))
            time.sleep(_POLL)
    finally:
        for _, process in running:
            process.end()


def _take(outcome: Outcome, process: _Process, tell: Callable[[str], object]) -> None:
    """Add the result of a trial that is over."""
    trial, texts = process.trial, process.result()
    outcome.trials += 1
    outcome.seconds += time.monotonic() - process.begin
    outcome.counts.update(process.counts)
    for text in texts:
        outcome.found.append(Finding(trial.seed, text, str(process.folder)))
        tell(f"found: {trial.attack}, seed {trial.seed}: {text} ({process.folder})")


class _Process:
    """A trial in a process of its own, which is a copy of this one."""

    def __init__(self, attack: Attack, trial: Trial) -> None:
        self.attack, self.trial = attack, trial
        self.counts: Counter[str] = Counter()
        self.folder = Path(tempfile.mkdtemp(prefix=f"fluxloom-{trial.attack}-{trial.seed}-".replace(" ", "-")))
        self.begin = time.monotonic()
        self._status: int | None = None
        self._late = False
        sys.stdout.flush()
        sys.stderr.flush()
        self._process = os.fork()
        if not self._process:
            self._run()

    def _run(self) -> None:
        """Run the trial and end this process."""
        status = 1
        try:
            os.setsid()
            os.environ[MARK] = self.folder.name
            work = self.folder / "work"
            work.mkdir()
            os.chdir(work)
            output = os.open(self.folder / "output.txt", os.O_WRONLY | os.O_CREAT)
            os.dup2(output, 1)
            os.dup2(output, 2)
            sys.stdout = sys.stderr = open(2, "w", closefd=False, errors="replace", buffering=1)  # noqa: SIM115
            faulthandler.enable(2)
            texts = list(self.attack.act(self.trial))
            (self.folder / "found.json").write_text(json.dumps({"texts": texts, "counts": self.trial.counts}))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)

    def over(self) -> bool:
        """Whether the process has ended; it is ended after its limit."""
        if not self._late and time.monotonic() - self.begin > self.attack.seconds:
            self._late = True
            os.killpg(self._process, signal.SIGKILL)
        process, status = os.waitpid(self._process, os.WNOHANG)
        if process:
            self._status = os.waitstatus_to_exitcode(status)
        return bool(process)

    def end(self) -> None:
        """End the process and all that it started."""
        if self._status is None:
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
        for process, _ in processes_of(MARK, self.folder.name):
            _kill(process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def result(self) -> list[str]:
        """Return what is wrong; the folder is removed if nothing is."""
        texts = list(self._texts())
        end = time.monotonic() + _GRACE
        while not self._late and any(processes_of(MARK, self.folder.name)) and time.monotonic() < end:
            time.sleep(_POLL)
        for process, command in processes_of(MARK, self.folder.name):
            _kill(process)
            if not self._late:
                texts.append(f"the process {command} is left")
        if not texts:
            shutil.rmtree(self.folder, ignore_errors=True)
        return texts

    def _texts(self) -> Iterator[str]:
        if self._late:
            yield f"not done after {self.attack.seconds:g} s"
        elif self._status:
            output = (self.folder / "output.txt").read_text(errors="replace").strip()[-_TAIL:]
            how = f"signal {-self._status}" if self._status < 0 else "an exception"
            yield f"ended by {how}: {output}"
        else:
            found = json.loads((self.folder / "found.json").read_text())
            self.counts.update(found["counts"])
            yield from found["texts"]


def processes_of(variable: str, value: str) -> Iterator[tuple[int, str]]:
    """Yield the running processes that were started with a variable in their environment, with their commands."""
    wanted = f"{variable}={value}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                yield int(folder.name), " ".join(words).strip()
        except OSError:  # it has ended, or belongs to another user
            continue


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def as_json(name: str, options: AttackOptions, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the record that ``--json`` writes."""
    return {
        "case": f"attack-{name}",
        "seed": options.seed,
        "full": options.full,
        "trials": sum(outcome.trials for outcome in outcomes),
        "found": sum(len(outcome.found) for outcome in outcomes),
        "attacks": [
            {
                "attack": outcome.attack, "trials": outcome.trials, "seconds": round(outcome.seconds, 1),
                "counts": dict(outcome.counts), "missing": outcome.missing,
                "found": [{"seed": one.seed, "text": one.text} for one in outcome.found],
            }
            for outcome in outcomes
        ],
    }  # fmt: skip
