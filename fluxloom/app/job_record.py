"""``run.json``: what is known of a run before its first step."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from fluxloom.app.crew import Crew
from fluxloom.app.request import Request
from fluxloom.app.system import fluxloom_version, package_version, python_version
from fluxloom.dsl.context import Context
from fluxloom.run.flow_run import FlowRun

__all__ = ["first_record"]


def first_record(
    request: Request, context: Context, run: FlowRun[Any], crew: Crew, commit: str, tell: Callable[[str], object]
) -> dict[str, Any]:
    """Return the record of a run that is about to begin; says how the mesh is divided. Collective."""
    packages = {name: package_version(name) for name in ("numpy", "scipy", "h5py", "mpi4py")}
    versions = {"fluxloom": fluxloom_version(), "python": python_version()}
    record: dict[str, Any] = {
        "case": request.case.model_dump(mode="json"),
        "file": request.file,
        "command": request.command,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "commit": commit,
        "versions": versions | {name: text for name, text in packages.items() if text},
        "device": crew.device,
        "device_name": crew.device_name,
        "threads": context.threads,
        "gpus": crew.gpus,
        "ranks": context.comm.size,
        "cells": run.flow.cells,
    }
    if (report := run.flow.partition) is not None:
        cells = next(found for found in report.sets if found.name == report.on)
        shares = [owned / cells.total for owned in cells.owned]
        tell(f"{report.on} divided by {report.method}: {', '.join(f'{100 * s:.2f} %' for s in shares)}")
        record |= {"crew": crew.record(), "shares": shares, "partition": asdict(report)}
    return record
