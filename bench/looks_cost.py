"""What looking at a flow costs: steps of the same flow with guards, with monitors and without, in turn.

    python bench/looks_cost.py [--device cuda] [--threads 0] [--small] [--every 10] [--json FILE] [NAME ...]

Each flow is built four times: twice with nothing that looks at it, once with guards, and once with monitors every 10
steps: the history, 16 probes, a line of 64 points, and forces where there are surfaces. Blocks of steps of all four
follow each other, each as long as the time between two looks of the guards. Differences are medians of those of
neighbouring blocks. What differs between the two with nothing is what the measurement cannot tell.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fluxloom.cases.files.loading import load_case
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom.run.guards import Guards
from fluxloom.run.results.results import ResultFolder

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
    plane, edges, cube = (96, 96, 64) if small else (512, 256, 256)
    many = 96 if small else 2000

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
        "staggered": HEAD.format(solver="staggered") + box(many) + "[fluid]\nviscosity = 1e-3\n" + LID,
        "edge_flow": HEAD.format(solver="edge_flow") + box(edges, 'kind = "triangle"\n') + "[fluid]\nviscosity = 1e-3\n"
        + LID,
        "edge_transport": HEAD.format(solver="edge_transport") + box(many, 'kind = "triangle"\n')
        + '[transport]\nvelocity_x = "0.5 - y"\nvelocity_y = "x - 0.5"\ndiffusivity = 1e-3\n'
        + '[initial]\nscalar = "exp(-40 * ((x - 0.7)**2 + (y - 0.5)**2))"\n'
        + "".join(f'[boundary.{s}]\ntype = "given"\nvalue = 0.0\n' for s in ("xmin", "xmax", "ymin", "ymax")),
        "airfoil": HEAD.format(solver="airfoil") + f"[mesh]\ni = {many}\nj = {many}\n",
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


def looking(name: str, every: int, small: bool) -> str:
    """Return the tables of the monitors of a case."""
    length = {"lattice": 64.0 if small else 256.0, "tsunami": 1e5}.get(name, 1.0)
    if name == "airfoil":
        return f"[history]\nevery = {every}\n[forces.wall]\nevery = {every}\n"
    rest = [0.4, 0.5] if name == "lattice" else [0.4]

    def place(x: float) -> list[float]:
        """Return a point on a line across the box."""
        return [length * part for part in (x, *rest)]

    often = f"every = {every}\n"
    points = "".join(f"points.p{k} = {place((k + 0.6) / 17)}\n" for k in range(16))
    line = f"[lines.across]\nstart = {place(0.05)}\nend = {place(0.95)}\ncount = 64\n{often}"
    found = f"[history]\n{often}[probes]\n{often}{points}{line}"
    sides = {"compressible": "xmin", "lattice": "ymax", "staggered": "ymax", "edge_flow": "ymax"}
    return found + (f"[forces.{sides[name]}]\n{often}" if name in sides else "")


class _Side:
    """A flow, with what looks at it."""

    def __init__(self, text: str, device: str, threads: int, clock: Callable[[], float], *, guarded: bool) -> None:
        self._clock = clock
        folder = Path(tempfile.mkdtemp())
        path = folder / "case.toml"
        path.write_text(text, encoding="utf-8")
        case, application = load_case(path)
        self.context = Context(device, threads=threads)
        self.run = application.build(case, self.context)
        self.run.begin(ResultFolder(folder))
        self.guards = Guards(case.guards.value, self.run, self.context)
        self.guarded = guarded
        if guarded:
            self.guards.begin()
        self.steps = 0

    def block(self, count: int) -> float:
        """Make some steps; return milliseconds a step."""
        self.context.device.synchronize()
        begin = self._clock()
        for _ in range(count):
            self.run.advance()
            self.steps += 1
            found = self.guards.stepped(self.steps, None, self.run.residual()) if self.guarded else None
            if found is not None:
                raise SystemExit(found.message)
        self.context.device.synchronize()
        return 1e3 * (self._clock() - begin) / count

    def look(self, count: int = 20) -> float:
        """Return the least milliseconds of a look that is judged at once."""
        found: list[float] = []
        for _ in range(count):
            begin = self._clock()
            self.guards.look(self.steps, None, last=True)
            found.append(1e3 * (self._clock() - begin))
        return min(found)


def measured(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """Measure one flow."""
    clock = time.process_time if given.cpu_time else time.perf_counter
    plain = cases(given.small)[name]
    watched = plain + looking(name, given.every, given.small)
    texts = [(plain, False), (plain, False), (plain, True), (watched, False)]
    sides = [_Side(text, given.device, given.threads, clock, guarded=guarded) for text, guarded in texts]
    every = max(sides[2].guards.record()["every"], given.every)
    every += -every % given.every
    for side in sides:
        side.block(every + 2)
    blocks: list[list[float]] = []
    begin = time.perf_counter()
    while len(blocks) < 8 or time.perf_counter() - begin < given.seconds:
        turn = len(blocks) % len(sides)
        order = [*sides[turn:], *sides[:turn]]
        found = {id(side): side.block(every) for side in order}
        blocks.append([found[id(side)] for side in sides])
    off = [statistics.median(block[which] for block in blocks) for which in range(len(sides))]
    again, guards, monitors = (
        statistics.median(100.0 * (b[which] - b[0]) / b[0] for b in blocks) for which in range(1, len(sides))
    )
    return {
        "case": name, "device": given.device, "cells": sides[0].run.flow.cells, "blocks": len(blocks), "steps": every,
        "every": given.every, "milliseconds_a_step": off, "again_percent": again, "guards_percent": guards,
        "monitors_percent": monitors, "guards_look_ms": sides[2].look(),
    }  # fmt: skip


def main() -> None:
    """Measure what is named, by default all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--every", type=int, default=10, help="steps between two looks of the monitors")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--cpu-time", action="store_true", help="processor time, where other programs run beside")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in given.names or cases(given.small):
        rows.append(row := measured(name, given))
        off, *_ = row["milliseconds_a_step"]
        again, guards, monitors = (row[f"{what}_percent"] for what in ("again", "guards", "monitors"))
        text = f"{name:16s} {off:9.4f} ms/step; again {again:+.2f} %, guards {guards:+.2f} %"
        print(f"{text}, monitors every {given.every} steps {monitors:+.2f} %", flush=True)
    if given.json is not None:
        copy = meter_for(Context(given.device).device, given.threads).measure().copy_gbs
        given.json.write_text(json.dumps({"copy_gbs": copy, "rows": rows}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
