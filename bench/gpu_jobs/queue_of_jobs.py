"""Jobs that wait for GPUs, and run side by side where some are left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from table import digests

__all__ = ["Job", "Queue"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Job:
    """What runs.

    Attributes
    ----------
    name
        Of its record; what stands before ``-x`` is what its efficiency is compared in.
    gpus
        How many it takes.
    limit
        Seconds after which it is ended.
    words
        The command; ``{ranks}``, ``{json}`` and ``{out}`` are filled in.
    shared
        Whether it is not timed: it sees all GPUs, occupies one for the queue, and runs beside others of its kind alone.
    """

    name: str
    gpus: int
    limit: float
    words: tuple[str, ...]
    shared: bool = False


@dataclass
class Running:
    """A job that has begun."""

    job: Job
    process: subprocess.Popen[bytes]
    gpus: list[int]
    since: float
    ended: bool = False


class Queue:
    """Starts jobs in their order, each on GPUs and cores of its own."""

    def __init__(self, folder: Path, count: int, limit: float) -> None:
        self.folder, self.count, self.end = folder, count, time.monotonic() + limit
        self.begun = time.monotonic()
        self.free = list(range(count))
        self.running: list[Running] = []
        self.done: list[str] = []
        cores = sorted(os.sched_getaffinity(0))
        share = max(1, len(cores) // count)
        self.cores = {gpu: cores[gpu * share : (gpu + 1) * share] or cores for gpu in range(count)}
        for name in ("records", "logs"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    @property
    def left(self) -> float:
        """Seconds until the limit."""
        return self.end - time.monotonic()

    def run(self, jobs: list[Job]) -> None:
        """Run all that there is time for."""
        waiting = list(jobs)
        while waiting or self.running:
            while waiting and self.fits(waiting[0]):
                job = waiting.pop(0)
                if self.left < 15:
                    self.say(job.name, "not begun: no time left", 0.0)
                else:
                    self.begin(job)
            time.sleep(0.05)
            for one in list(self.running):
                self.look(one)

    def fits(self, job: Job) -> bool:
        """Whether a job can begin now."""
        return len(self.free) >= job.gpus and all(one.job.shared == job.shared for one in self.running)

    def begin(self, job: Job) -> None:
        """Start a job."""
        gpus, folder = [self.free.pop(0) for _ in range(job.gpus)], self.folder
        places = {"json": str(folder / "records" / f"{job.name}.json"), "out": str(folder / "runs" / job.name)}
        words = [_filled(word, places) for word in job.words]
        cores = {core for gpu in gpus for core in self.cores[gpu]}
        seen = range(self.count) if job.shared else gpus
        environment = os.environ | {"CUDA_VISIBLE_DEVICES": ",".join(map(str, seen)), "PYTHONUNBUFFERED": "1"}
        with (folder / "logs" / f"{job.name}.log").open("wb") as log:
            process = subprocess.Popen(
                words, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=ROOT, env=environment,
                start_new_session=True, preexec_fn=lambda: os.sched_setaffinity(0, cores),
            )  # fmt: skip
        self.running.append(Running(job, process, gpus, time.monotonic()))

    def look(self, one: Running) -> None:
        """End a job that is over its limit; take note of one that has ended."""
        seconds, status = time.monotonic() - one.since, one.process.poll()
        if status is None:
            if seconds > one.job.limit or self.left < 5:
                number = signal.SIGKILL if one.ended else signal.SIGTERM
                if not one.ended or seconds > one.job.limit + 3 or self.left < 2:
                    os.killpg(one.process.pid, number)
                one.ended = True
            return
        self.running.remove(one)
        self.free = sorted([*self.free, *one.gpus])
        found = self.folder / "runs" / one.job.name
        if (found / "run.json").exists():
            record = json.loads((found / "run.json").read_text(encoding="utf-8"))
            if one.job.name.startswith("bits-"):
                record["fields"] = digests(found)
            target = self.folder / "records" / f"{one.job.name}.json"
            target.write_text(json.dumps(record), encoding="utf-8")
        shutil.rmtree(found, ignore_errors=True)
        self.say(one.job.name, "ended by the limit" if one.ended else f"status {status}", seconds)

    def say(self, name: str, what: str, seconds: float) -> None:
        """Print a line, with the end of the log where a job has failed."""
        self.done.append(f"{name}: {what}, {seconds:.0f} s")
        print(f"[{time.monotonic() - self.begun:4.0f}] {self.done[-1]}", flush=True)
        log = self.folder / "logs" / f"{name}.log"
        if what != "status 0" and log.exists():
            print("    " + "\n    ".join(log.read_text(errors="replace").strip().splitlines()[-4:]), flush=True)


def _filled(word: str, places: dict[str, str]) -> str:
    return places.get(word.strip("{}"), word) if word.startswith("{") else word
