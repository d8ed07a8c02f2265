"""What guards cost: steps of the same flow with and without them, in turn; prints ms a step and the difference.

    python bench/guards_cost.py [--device cuda] [--threads 0] [--small] [NAME ...]

Each flow is built three times, once with guards and twice without, and blocks of steps of all follow each other, each
as long as the time between two looks. Differences are medians of those of neighbouring blocks. What differs between
the two without guards is what the measurement cannot tell.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fluxloom.app.application import Writer
from fluxloom.app.loading import load_case
from fluxloom.dsl.context import Context
from fluxloom.run.guards import Guards
from fluxloom.run.results.folder import ResultFolder

HEAD = '[case]\nname = "cost"\nsolver = "{solver}"\n[run]\niterations = 100000000\n'
WALLS = "".join(f'[boundary.{side}]\ntype = "wall"\n' for side in ("xmin", "xmax", "ymin"))
LID = WALLS + '[boundary.ymax]\ntype = "wall"\nvelocity = [1.0, 0.0]\n'
SLIP = "".join(f'[boundary.{side}]\ntype = "slip"\n' for side in ("xmin", "xmax", "ymin", "ymax"))
WAVE = '[initial]\ndensity = "1 + 0.1 * exp(-60 * ((x - 0.5)**2 + (y - 0.5)**2))"\npressure = "1"\n'
VORTICES = 'velocity_x = "sin(2*pi*x) * cos(2*pi*y)"\nvelocity_y = "-cos(2*pi*x) * sin(2*pi*y)"\n'
JOINED = 'periodic = [["xmin", "xmax"], ["ymin", "ymax"]]\n'


def cases(small: bool) -> dict[str, str]:
    """Return the case files by name."""
    n = 128 if small else 1000
    plane, edges, points, cube = (96, 96, 96, 64) if small else (512, 256, 1000, 256)

    def box(n: int, more: str = "") -> str:
        return f"[mesh]\nnx = {n}\nny = {n}\n{more}"

    return {
        "compressible": HEAD.format(solver="compressible") + box(n) + "[gas]\nconstant = 1.0\n" + WAVE + SLIP
        + "[time]\nend = 1e6\n",
        "lattice": HEAD.format(solver="lattice") + box(cube, f"nz = {cube}\n") + "[fluid]\nreynolds = 100\n"
        + f"[reference]\nlength = {cube}.0\n" + LID.replace("[1.0, 0.0]", "[1.0, 0.0, 0.0]")
        + '[boundary.zmin]\ntype = "wall"\n[boundary.zmax]\ntype = "wall"\n[output]\nimage = false\npicture = false\n',
        "incompressible": HEAD.format(solver="incompressible") + box(plane, JOINED) + "[fluid]\nviscosity = 1e-3\n"
        + "[initial]\n" + VORTICES,
        "staggered": HEAD.format(solver="staggered") + box(plane) + "[fluid]\nviscosity = 1e-3\n" + LID,
        "edge_flow": HEAD.format(solver="edge_flow") + box(edges, 'kind = "triangle"\n') + "[fluid]\nviscosity = 1e-3\n"
        + LID,
        "edge_transport": HEAD.format(solver="edge_transport") + box(points, 'kind = "triangle"\n')
        + '[transport]\nvelocity_x = "0.5 - y"\nvelocity_y = "x - 0.5"\ndiffusivity = 1e-3\n'
        + '[initial]\nscalar = "exp(-40 * ((x - 0.7)**2 + (y - 0.5)**2))"\n'
        + "".join(f'[boundary.{s}]\ntype = "given"\nvalue = 0.0\n' for s in ("xmin", "xmax", "ymin", "ymax")),
        "airfoil": HEAD.format(solver="airfoil") + f"[mesh]\ni = {n}\nj = {n}\n",
        "tsunami": HEAD.format(solver="tsunami").replace("100000000", "100000\ntime = 1e6") + TSUNAMI.format(n=n // 2),
    }  # fmt: skip


TSUNAMI = """
[mesh]
x = [0.0, 100000.0]
y = [0.0, 100000.0]
nx = {n}
ny = {n}
[bathymetry]
expression = "-100 + 0 * x"
[initial]
expression = "exp(-(((x - 5e4)**2 + (y - 5e4)**2) / 1e8))"
"""


class _Side:
    """A flow, with guards or without."""

    def __init__(self, text: str, device: str, threads: int, guarded: bool, clock: Callable[[], float]) -> None:
        self._clock = clock
        folder = Path(tempfile.mkdtemp())
        path = folder / "case.toml"
        path.write_text(text, encoding="utf-8")
        case, application = load_case(path)
        self.context = Context(device, threads=threads)
        self.runner: Any = application.build(case, self.context)
        writer: object = self.runner
        if isinstance(writer, Writer):
            writer.begin(ResultFolder(folder))
        self.guards = Guards(case.guards, self.runner, self.context) if guarded else None
        if self.guards is not None:
            self.guards.begin()
        self.steps = 0

    def block(self, count: int) -> float:
        """Make some steps; return milliseconds a step."""
        self.context.device.synchronize()
        begin = self._clock()
        for _ in range(count):
            self.runner.advance()
            residual = self.runner.residual()
            self.steps += 1
            if self.guards is not None and (found := self.guards.stepped(self.steps, None, residual)) is not None:
                raise SystemExit(found.message)
        self.context.device.synchronize()
        return 1e3 * (self._clock() - begin) / count

    def look(self, count: int = 20) -> float:
        """Return the least milliseconds of a look that is judged at once."""
        assert self.guards is not None
        found: list[float] = []
        for _ in range(count):
            begin = self._clock()
            self.guards.look(self.steps, None, last=True)
            found.append(1e3 * (self._clock() - begin))
        return min(found)


def main() -> None:
    """Measure what is named, by default all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--cpu-time", action="store_true", help="processor time, where other programs run beside")
    given = parser.parse_args()
    clock = time.process_time if given.cpu_time else time.perf_counter
    known = cases(given.small)
    for name in given.names or known:
        sides = [_Side(known[name], given.device, given.threads, guarded, clock) for guarded in (False, False, True)]
        assert sides[-1].guards is not None
        every = sides[-1].guards.record()["every"]
        for side in sides:
            side.block(every + 2)
        blocks, begin = [], time.perf_counter()
        while len(blocks) < 6 or time.perf_counter() - begin < given.seconds:
            turn = len(blocks) % 3
            order = [*sides[turn:], *sides[:turn]]
            found = {id(side): side.block(every) for side in order}
            blocks.append([found[id(side)] for side in sides])
        off, on = (statistics.median(block[which] for block in blocks) for which in (0, 2))
        again, more = (statistics.median(100.0 * (b[which] - b[0]) / b[0] for b in blocks) for which in (1, 2))
        least, look = min(block[0] for block in blocks), sides[-1].look()
        text = f"{name:16s} {off:9.4f} ms/step without, {on:9.4f} with, {more:+6.2f} % (again without {again:+.2f} %)"
        text += f"; {len(blocks)} blocks of {every} steps"
        print(f"{text}; a look {look:.3f} ms, {100.0 * look / (every * least):.2f} %", flush=True)


if __name__ == "__main__":
    main()
