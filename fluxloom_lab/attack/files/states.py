"""Samples of what runs write and read again: checkpoints, results, tunings; and of tables and rasters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import fluxloom as fl
from fluxloom.comm.base import SelfComm
from fluxloom.dsl.checkpoint.checkpoint import Checkpoints
from fluxloom.dsl.checkpoint.state import State, write_state
from fluxloom.mesh import box2d, write
from fluxloom_lab.attack.files.sample import Sample

__all__ = ["CACHED", "SERIES", "Ageing", "cached", "rasters", "results", "scripts", "states", "tables", "tunings"]

STEPS = 6


@fl.kernel
def grow(t: fl.RW):
    """Let a value grow, ``t <- 1.5 t + 1``."""
    t[0] = 1.5 * t[0] + 1.0


class Ageing:
    """A script of one loop, ``t <- 1.5 t + 1`` in each cell."""

    def __init__(self, device: str = "reference", size: int = 12) -> None:
        context = fl.Context(device, threads=1)
        cells = context.set(size, "cells")
        self.context = context
        self.t = context.dat(cells, np.arange(float(size)), "t")
        self.loop = fl.Loop(grow, cells, self.t)

    def run(self, saver: Checkpoints | None = None, steps: int = STEPS) -> np.ndarray:
        """Run the steps, from a checkpoint where there is one, and return the values."""
        if saver is None:
            for _ in range(steps):
                self.loop()
            return self.t.read()
        with saver.watch(self.context, restart=True):
            for _ in range(steps):
                self.loop()
        return self.t.read()


def scripts(folder: Path) -> Iterator[Sample]:
    """Yield the checkpoint of a script."""
    path = folder / "run.h5"
    Ageing().run(Checkpoints(path, every_calls=4))
    yield Sample("script", path.name, path.read_bytes())


def states(folder: Path) -> Iterator[Sample]:
    """Yield the state of a run: dats, globals, numbers and tables."""
    context = fl.Context("reference")
    cells = context.set(7, "cells")
    dats = {
        "flow.u": context.dat(cells, np.cos(np.arange(14.0)).reshape(7, 2), "u"),
        "flow.n": context.dat(cells, np.arange(7), "n", dtype="int64"),
        "flow.one": context.dat(cells, np.ones(7), "one", dtype="float32"),
    }
    state = State(
        dats, {"flow.g": context.scalar(0.25, "g")}, {"flow.steps": 5, "flow.names": ["a", "b"]},
        {"history.rows": np.arange(12.0).reshape(4, 3)},
    )  # fmt: skip
    about = {"case": {"case": {"name": "small", "solver": "diffusion"}}, "run": "1", "steps": 5, "time": 0.5}
    path = folder / "checkpoint.h5"
    write_state(path, SelfComm(), state, about)
    yield Sample("state", path.name, path.read_bytes())


def results(folder: Path) -> Iterator[Sample]:
    """Yield fields of a result from which a flow may start."""
    mesh = box2d(3, 3)
    x, y = np.linspace(0, 1, mesh.n_cells), np.linspace(1, 2, mesh.n_points)
    kinds: tuple[tuple[str, dict[str, Any]], ...] = (
        ("final.vtkhdf", {"cell_data": {"u": x, "p": x + 1}}), ("final.vtu", {"cell_data": {"u": x, "p": x + 1}}),
        ("final.vtkhdf", {"point_data": {"u": y, "p": y + 1}}),
    )  # fmt: skip
    for name, options in kinds:
        write(path := folder / name, mesh, **options)
        yield Sample(f"{name} {'cell' if 'cell_data' in options else 'point'}", name, path.read_bytes())


SERIES = "t, p, q\n0, 1, 5\n1, 3.5, 7\n2, 1e-3, 9\n4, -2, 1\n"


def tables(folder: Path) -> Iterator[Sample]:
    """Yield series over time, with and without a heading."""
    rows = SERIES.split("\n", 1)[1]
    for name, text in (
        ("commas", SERIES), ("blanks", rows.replace(", ", " ")), ("semicolons", SERIES.replace(",", ";")),
        ("remarks", "# a series\n" + SERIES.replace("\n1", "  # first\n1")),
    ):  # fmt: skip
        yield Sample(name, "series.csv", text.encode())


def rasters(folder: Path) -> Iterator[Sample]:
    """Yield rasters as ESRI grids and as lines."""
    head = "ncols 4\nnrows 3\nxllcorner 10\nyllcorner -2\ncellsize 0.5\nNODATA_value -9999\n"
    body = "1 2 3 4\n5 6 -9999 8\n9 10 11 12.5\n"
    yield Sample("esri", "bed.asc", (head + body).encode())
    yield Sample("centres", "bed.asc", (head.replace("corner", "center") + body).encode())
    rows = "".join(f"{x} {y} {x * y + 1}\n" for x in (0, 1, 2) for y in (0.0, 0.5, 1.5))
    yield Sample("lines", "bed.xyz", rows.encode())


def tunings(folder: Path) -> Iterator[Sample]:
    """Yield a tuning file."""
    schedules = (fl.Schedule(strategy="gather", block=4096), fl.Schedule(lanes=8), fl.Schedule())
    found = {
        f"{'0' * 15}{k}:abcdef01:t2:2^12": {"loop": f"loop{k}", "seconds": 1e-3 * k, "schedule": asdict(schedule)}
        for k, schedule in enumerate(schedules)
    }
    yield Sample("tuning", "tuning.json", json.dumps(found, indent=1, sort_keys=True).encode())


CACHED = "cache"
"""Folder of compiled code."""


def cached(folder: Path) -> Iterator[Sample]:
    """Yield all files of a cache of compiled code in which `Ageing` is; needs a compiler."""
    import os

    os.environ["FLUXLOOM_CACHE"] = str(folder / CACHED)
    Ageing("cpu").run()
    for path in sorted((folder / CACHED).rglob("*")):
        if path.is_file() and path.stat().st_size:
            yield Sample(path.suffix, str(path.relative_to(folder)), path.read_bytes())
