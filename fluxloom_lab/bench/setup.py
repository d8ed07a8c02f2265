"""The set-up benchmark: what comes before the first step of a flow, in seconds and in memory."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, shared_volumes
from fluxloom.mesh import box3d, read_data
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.refine import refine
from fluxloom.mesh.ranks.distribute import part_of
from fluxloom.mesh.ranks.renumber import renumber
from fluxloom_lab.bench.base import Record, Tell, box_from_text, count_gpus, device_name
from fluxloom_lab.bench.flows.compressible_domain import Domain, flow_on, model_of
from fluxloom_lab.bench.options import BenchOptions, cells_option
from fluxloom_lab.options import option

__all__ = ["KINDS", "SetupBench"]

KINDS = ("hexahedron", "tetra", "prism", "pyramid")
SIDE = 32
_PERTURB = 0.2
_GIB = 2.0**20
"""Kilobytes of a gibibyte."""

Result = TypeVar("Result")


class _Phases:
    """Times of one phase after the other."""

    def __init__(self, tell: Tell) -> None:
        self.rows: list[dict[str, Any]] = []
        self._tell = tell

    def run(self, name: str, action: Callable[[], Result]) -> Result:
        """Do something, and note how long it took and the most memory that the process has had until then."""
        wall, busy = time.perf_counter(), time.process_time()
        found = action()
        row = {
            "phase": name, "seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - busy,
            "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _GIB,
        }  # fmt: skip
        self.rows.append(row)
        self._tell(
            f"{name}: {row['seconds']:.2f} s ({row['cpu_seconds']:.2f} s of processors), {row['peak_gib']:.2f} GiB"
        )
        return found

    def total(self, key: str) -> float:
        """Return the sum over the phases."""
        return sum(row[key] for row in self.rows)


@dataclass(frozen=True)
class SetupOptions(BenchOptions):
    """Options of the benchmark ``setup``."""

    cells: str = cells_option("Size of the box: N or NX,NY,NZ.")
    kind: str = option("", metavar="NAME", help="Cells of a box: hexahedron, tetra, prism or pyramid.")
    mesh: str = option("", metavar="FILE", help="Mesh of a file, in place of a box.")
    refine: int = option(0, metavar="N", help="Halve all edges of the mesh so many times.", shown="0", least=0)
    model: str = option("", metavar="NAME", help="euler, laminar or rans.")


class SetupBench:
    """A mesh, its renumbering, division and control volumes, and a flow on it up to its first step.

    The mesh is a box of ``--kind``, or that of ``--mesh``, refined ``--refine`` times. Kernels are not compiled.
    """

    title = "set-up of a flow: mesh, renumbering, division, control volumes, loops; seconds and memory"
    options = SetupOptions

    def run(self, options: SetupOptions, tell: Tell) -> Record:
        """Measure."""
        model, kind = model_of(options.model), _kind_of(options)
        context = options.context()
        phases = _Phases(tell)
        mesh = phases.run("mesh", partial(_mesh, options, kind))
        if options.refine:
            mesh = phases.run("refinement", partial(refine, mesh, options.refine))
        mesh = phases.run("renumbering", partial(renumber, mesh)).mesh
        part = phases.run("division", partial(part_of, context.comm, mesh, maps=FLOW_MAPS))
        volumes = phases.run("control volumes", partial(shared_volumes, part))
        domain = Domain(options.mesh or kind, mesh, part, volumes, mesh.n_cells)
        del part, volumes
        phases.run("flow", partial(flow_on, context, domain, model))
        return _record(options, context, model, mesh, phases)


def _kind_of(options: SetupOptions) -> str:
    """Return the kind of cells of a box.

    Raises
    ------
    CaseError
        If there is no such kind, and for a kind or a size beside the mesh of a file.
    """
    if options.mesh and (options.kind or options.cells):
        raise CaseError(f"--mesh reads a mesh, --{'kind' if options.kind else 'cells'} is of a box: give one of them")
    if options.kind and options.kind not in KINDS:
        raise CaseError(f"--kind {options.kind!r}{did_you_mean(options.kind, KINDS)} (allowed: {', '.join(KINDS)})")
    return options.kind or KINDS[0]


def _mesh(options: SetupOptions, kind: str) -> MeshData:
    if options.mesh:
        return read_data(options.mesh)
    nz, ny, nx = box_from_text(options.cells, SIDE)
    return box3d(nx, ny, nz, kind=kind, perturb=_PERTURB)


def _record(options: SetupOptions, context: Context, model: str, mesh: MeshData, phases: _Phases) -> Record:
    seconds, millions = phases.total("seconds"), mesh.n_cells / 1e6
    metrics = {
        "threads": context.threads, "cpu_seconds": phases.total("cpu_seconds"), "peak_gib": phases.rows[-1]["peak_gib"],
        "seconds_per_million_cells": seconds / millions,
        "cpu_seconds_per_million_cells": phases.total("cpu_seconds") / millions,
        "cells": {name: len(block) for name, block in mesh.cells.items()}, "phases": phases.rows,
    }  # fmt: skip
    return Record(
        case="setup", model=model, device=context.device.name, device_name=device_name(context), precision="float64",
        sizes={"cells": mesh.n_cells}, copy_gbs=0.0, seconds=seconds, metrics=metrics, loops=[],
        command=options.command, gpus=count_gpus(context),
    )  # fmt: skip
