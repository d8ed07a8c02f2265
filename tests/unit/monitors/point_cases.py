"""Cases as text that are built and run here, and the tables that they leave."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import fluxloom as fl
from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.march import march
from fluxloom.run.results.files import ResidualLog
from fluxloom.run.results.results import ResultFolder

__all__ = ["build", "run", "table"]


def build(text: str, comm: Comm | None = None) -> FlowRun[Any]:
    model, application = parse_case(Document(Path("case"), tomllib.loads(text), {}))
    context = fl.Context("cpu", threads=1, tuning=False, comm=comm if comm is not None else SelfComm())
    return application.build(model, context)


def run(text: str, folder: Path, steps: int = 12, comm: Comm | None = None) -> FlowRun[Any]:
    made = build(text, comm)
    made.begin(ResultFolder(folder if comm is None or comm.rank == 0 else None))
    march(made, steps, ResidualLog(), comm=comm, asked=True)
    made.finish(pictures=False)
    return made


def table(path: Path) -> Mapping[str, np.ndarray]:
    with path.open(encoding="utf-8") as file:
        names = file.readline().strip().split(",")
    return dict(zip(names, np.genfromtxt(path, delimiter=",", skip_header=1).reshape(-1, len(names)).T, strict=True))
