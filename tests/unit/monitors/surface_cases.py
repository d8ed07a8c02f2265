"""Cases whose surfaces are measured: as text that is built and run here; a mesh of a ring."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from math import cos, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import fluxloom as fl
from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.results.results import ResultFolder

__all__ = ["built", "ring", "run", "table"]


def built(text: str, comm: Comm | None = None, device: str = "cpu") -> FlowRun[Any]:
    """Return the run of a case."""
    model, application = parse_case(Document(Path("case"), tomllib.loads(text), {}))
    context = fl.Context(device, threads=1, tuning=False, comm=comm if comm is not None else SelfComm())
    return application.build(model, context)


def run(text: str, folder: Path | None = None, steps: int = 2, comm: Comm | None = None) -> FlowRun[Any]:
    """Return a case behind some steps, its files written on rank 0."""
    made = built(text, comm)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    made.begin(ResultFolder(folder if comm is None or comm.rank == 0 else None))
    for _ in range(steps):
        made.advance()
    made.finish(pictures=False)
    return made


def table(path: Path) -> Mapping[str, npt.NDArray[np.float64]]:
    """Return the columns of a file."""
    with path.open(encoding="utf-8") as file:
        names = file.readline().strip().split(",")
    rows = np.genfromtxt(path, delimiter=",", skip_header=1).reshape(-1, len(names))
    return dict(zip(names, rows.T, strict=True))


def ring(path: Path, across: int, around: int, triangles: bool = False, shift: float = 0.0) -> None:
    """Write quads or triangles between circles of radius 1 and 2 round (shift, 0): patches inner and outer."""

    def node(i: int, j: int) -> int:
        return j * around + i % around

    points = [
        (shift + (1.0 + j / across) * cos(2 * pi * i / around), (1.0 + j / across) * sin(2 * pi * i / around))
        for j in range(across + 1)
        for i in range(around)
    ]
    quads = [
        (node(i, j), node(i, j + 1), node(i + 1, j + 1), node(i + 1, j)) for j in range(across) for i in range(around)
    ]
    cells = [f"9 {a} {b} {c} {d}" for a, b, c, d in quads]
    if triangles:
        cells = [f"5 {x} {y} {z}" for a, b, c, d in quads for x, y, z in ((a, b, c), (a, c, d))]
    sides = {
        "inner": [(node(i, 0), node(i + 1, 0)) for i in range(around)],
        "outer": [(node(i + 1, across), node(i, across)) for i in range(around)],
    }
    lines = ["NDIME= 2", f"NELEM= {len(cells)}", *cells]
    lines += [f"NPOIN= {len(points)}", *(f"{x:.17g} {y:.17g}" for x, y in points), f"NMARK= {len(sides)}"]
    for name, faces in sides.items():
        lines += [f"MARKER_TAG= {name}", f"MARKER_ELEMS= {len(faces)}", *(f"3 {a} {b}" for a, b in faces)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
