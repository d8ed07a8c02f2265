"""What is run: lists of jobs, each on 1, 2, 4 ... GPUs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cases import CASES
from queue_of_jobs import Job

__all__ = ["STEPS", "Settings"]

HERE = Path(__file__).resolve().parent
PYTHON = sys.executable


@dataclass(frozen=True)
class Settings:
    """What the command line says."""

    folder: Path
    device: str
    small: bool
    count: int

    def size(self, usual: str, small: str) -> str:
        """Return the size of a problem."""
        return small if self.small else usual

    def place(self, gpus: int) -> tuple[str, ...]:
        """Return the options that say where a job runs."""
        if self.device == "cuda":
            return ("--ranks", f"cuda*{gpus}") if gpus > 1 else ("--device", "cuda")
        return ("--ranks", f"cpu:1*{gpus}") if gpus > 1 else ("--device", "cpu", "--threads", "1")

    def bench(self, name: str, gpus: int, limit: float, *words: str) -> Job:
        """Return a job that runs a benchmark."""
        command = (PYTHON, "-m", "fluxloom", "bench", *words, *self.place(gpus), "--json", "{json}")
        return Job(f"{name}-x{gpus}", gpus, limit, command)

    def case(self, name: str, gpus: int, limit: float, *, prefix: str = "", **numbers: Any) -> Job:
        """Return a job that runs a case file of `cases`, whose text takes these numbers.

        With the prefix ``global-`` its bits do not depend on the ranks, and with ``bits-`` it writes its fields too.
        """
        folder = self.folder / "cases"
        folder.mkdir(parents=True, exist_ok=True)
        path, text = folder / f"{prefix}{name}-x{gpus}.toml", CASES[name.removesuffix("-weak")](**numbers)
        path.write_text(_with_fields(text) if prefix == "bits-" else text, encoding="utf-8")
        grade = ("--set", "run.schedule=deterministic=global") if prefix else ()
        command = (PYTHON, "-m", "fluxloom", "run", str(path), *grade, *self.place(gpus), "--output", "{out}")
        shared = prefix == "bits-"
        return Job(f"{prefix}{name}-x{gpus}", 1 if shared else gpus, limit, command, shared)

    def script(self, name: str, gpus: int, limit: float, *words: str) -> Job:
        """Return a job that runs a script of this folder."""
        return Job(name, gpus, limit, (PYTHON, str(HERE / words[0]), *words[1:]), shared=True)

    @property
    def numbers(self) -> list[int]:
        """1, 2, 4 ... GPUs."""
        return [n for n in (1, 2, 4, 8) if n <= self.count]


def _with_fields(text: str) -> str:
    return text.replace('format = "none"\n', "").replace("image = false\n", "")


def lattices(s: Settings) -> Iterator[Job]:
    """Yield D3Q19, all of it pull and in place: strong, with walls, weak, and with bodies that move."""
    few = ("-n", s.size("50", "4"), "--rounds", "3")
    side = int(s.size("512", "24"))
    ways = ("--streaming", "pull,in-place")
    for n in s.numbers:
        cells = ("--cells", str(side))
        yield s.bench("lbm", n, 120, "lbm", "--precision", "float32,float64,float16", *ways, *few, *cells)
        yield s.bench("lbm-walls", n, 100, "lbm", "--walls", "--precision", "float32", *ways, *few, *cells)
        yield s.case("lattice-moving", n, 90, side=side, steps=int(s.size("100", "20")))
    for n in s.numbers[1:]:
        cells = ("--cells", f"{side},{side},{side * n}")
        yield s.bench("lbm-weak", n, 120, "lbm", "--precision", "float32,float64", *ways, *few, *cells)


def airfoil(s: Settings) -> Iterator[Job]:
    """Yield Airfoil, strong and weak."""
    words = ("airfoil", "--partition", "rcb", "--rounds", "3")
    weak = {1: "1260,3042", 2: "1782,4301", 4: "2520,6083", 8: "3564,8602"}
    for n in s.numbers:
        yield s.bench("airfoil-2.88M", n, 60, *words, "--cells", s.size("2.88M", "20,30"))
        yield s.bench("airfoil-40M", n, 150, *words, "--cells", s.size("40M", "40,60"))
        yield s.bench("airfoil-weak-11.5M", n, 150, *words, "--cells", s.size(weak[n], f"{20 * n},30"))


def poisson(s: Settings) -> Iterator[Job]:
    """Yield Poisson's equation in a channel, without the library that it is compared with on one GPU."""
    for n in s.numbers:
        for side in (512, 1024):
            words = ("poisson", "--cells", s.size(str(side), str(side // 32)), "--rounds", "5")
            words += ("--methods", "slabs") if n > 1 else ()
            job = s.bench(f"poisson-{side}", n, 100, *words)
            alone = (PYTHON, "-c", _ALONE, *job.words[3:]) if n == 1 else job.words
            yield Job(job.name, n, job.limit, alone)


_ALONE = """
import sys
import fluxloom_lab.bench.linear.poisson as poisson
poisson.usual_solver = lambda *_: None
from fluxloom.cli.main import main
sys.argv[0] = "fluxloom"
main()
"""


def deterministic(s: Settings) -> Iterator[Job]:
    """Yield runs whose bits may not depend on the number of GPUs: what that costs, and whether it is so."""
    grade = ("--schedule", "deterministic=global")
    words = ("airfoil", "--partition", "rcb", "--rounds", "3", *grade)
    for n in s.numbers:
        few = ("-n", s.size("50", "4"), "--rounds", "3")
        yield s.bench("global-lbm", n, 60, "lbm", "--cells", s.size("512", "24"), *few, *grade)
        yield s.bench("global-airfoil-2.88M", n, 60, *words, "--cells", s.size("2.88M", "20,30"))
    yield s.bench("global-airfoil-40M", s.numbers[-1], 100, *words, "--cells", s.size("40M", "40,60"))


def bits(s: Settings) -> Iterator[Job]:
    """Yield small runs of many solvers whose fields are compared."""
    few: dict[str, dict[str, int]] = {
        "lattice-moving": {"side": 48, "steps": 40}, "explicit": {"side": 16, "steps": 20},
        "implicit": {"side": 16, "steps": 6}, "les-multigrid": {"side": 24, "steps": 6},
        "les-jacobi": {"side": 24, "steps": 6}, "edge-flow": {"side": 12, "steps": 6},
        "tsunami": {"nx": 100, "ny": 60}, "airfoil": {"i": 80, "j": 60},
    }  # fmt: skip
    for n in s.numbers:
        for name, numbers in few.items():
            yield s.case(name, n, 100, prefix="bits-", **numbers)


def grades(s: Settings) -> Iterator[Job]:
    """Yield the runs of `flows` and `compressible` again, on all GPUs, with bits that do not depend on their number."""
    n = s.numbers[-1]
    yield s.case("tsunami", n, 120, prefix="global-", nx=int(s.size("2000", "40")), ny=int(s.size("1000", "20")))
    yield s.case("les-multigrid", n, 150, prefix="global-", side=int(s.size("160", "12")), steps=int(s.size("12", "4")))
    yield s.case("edge-flow", n, 150, prefix="global-", side=int(s.size("88", "6")), steps=int(s.size("12", "4")))
    for name in ("implicit", "multigrid"):
        yield s.case(name, n, 120, prefix="global-", side=int(s.size("128", "10")), steps=int(s.size("12", "4")))


def faults(s: Settings) -> Iterator[Job]:
    """Yield one job that kills a rank, and goes on with fewer."""
    yield s.script("faults", 1, 150, "faults.py", s.device, str(s.numbers[-1]), "{json}")


def compressible(s: Settings) -> Iterator[Job]:
    """Yield Euler and Spalart-Allmaras, explicit: strong on 4.1 M cells, weak from there; implicit and multigrid."""
    side = int(s.size("160", "10"))
    boxes = {1: (1, 1, 1), 2: (1, 1, 2), 4: (1, 2, 2), 8: (2, 2, 2)}
    for model in ("euler", "rans"):
        words = ("compressible", "--partition", "rcb", "--rounds", "3", "-n", "3", "--model", model)
        for n in s.numbers:
            yield s.bench(f"compressible-{model}", n, 150, *words, "--cells", str(side))
    for n in s.numbers:
        yield s.case("implicit", n, 120, side=int(s.size("128", "10")), steps=int(s.size("12", "4")))
        yield s.case("multigrid", n, 120, side=int(s.size("128", "10")), steps=int(s.size("30", "4")))
    n = s.numbers[-1]
    cells = ",".join(str(side * k) for k in boxes[n])
    words = ("compressible", "--partition", "rcb", "--rounds", "3", "-n", "3", "--model", "euler")
    yield s.bench("compressible-euler-weak", n, 200, *words, "--cells", cells)


def flows(s: Settings) -> Iterator[Job]:
    """Yield large-eddy simulation, edges and shallow water on about 4 M cells, strong."""
    for n in s.numbers:
        yield s.case("les-multigrid", n, 150, side=int(s.size("160", "12")), steps=int(s.size("12", "4")))
        yield s.case("edge-flow", n, 150, side=int(s.size("88", "6")), steps=int(s.size("12", "4")))
        yield s.case("tsunami", n, 120, nx=int(s.size("2000", "40")), ny=int(s.size("1000", "20")))
    for n in s.numbers:
        yield s.bench("extruded", n, 100, "extruded", "--cells", s.size("256,256,64", "16,16,16"), "--rounds", "2")
        yield s.bench("les", n, 100, "les", "--cells", s.size("128,256,256", "16,16,16"), "--rounds", "2")


def weak(s: Settings) -> Iterator[Job]:
    """Yield shallow water and edges with 4 M cells a GPU."""
    for n in s.numbers[1:]:
        yield s.case("tsunami-weak", n, 150, nx=int(s.size("2000", "40")) * n, ny=int(s.size("1000", "20")))


def tests(s: Settings) -> Iterator[Job]:
    """Yield the tests on several ranks that take GPUs."""
    words = (PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "12", "-m", "cuda", "tests/parallel",
             "tests/conformance/test_stencil_ranks.py", "tests/conformance/test_slots_ranks.py")  # fmt: skip
    yield Job("tests", s.numbers[-1], 480, words)


STEPS: dict[str, Callable[[Settings], Iterator[Job]]] = {
    step.__name__: step
    for step in (
        lattices, airfoil, poisson, deterministic, bits, grades, faults, compressible, flows, weak, tests,
    )
}
