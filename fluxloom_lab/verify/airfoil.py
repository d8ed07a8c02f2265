"""Airfoil against its published residual, and every device and strategy against the reference device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fluxloom.cases.files.case import parse_schedule, schedule_text
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.flows.airfoil.flow import airfoil_part
from fluxloom.mesh.generate.airfoil import AirfoilMesh, airfoil_mesh
from fluxloom.mesh.ranks.distribute import DistributedMesh, distribute
from fluxloom.run.flow_run import gathered
from fluxloom.solvers.airfoil.flow import Airfoil, AirfoilConstants
from fluxloom_lab.verify.base import Check, RankedOptions, Tell

__all__ = ["RMS_100", "RMS_1000", "AirfoilVerification"]

RMS_100 = 5.0218612497e-4
RMS_1000 = 0.0001060114637578
_OP2 = "OP2 Airfoil, mesh of 720 000 cells"
_SMALL, _SMALL_STEPS = (40, 36), 3  # large enough for several threads, blocks and tiles; the last step is fused
_ROUNDING = 1e-11
_STRATEGIES = ("block_colour", "gather", "two_pass", "element_colour")


@dataclass(frozen=True)
class _Way:
    """A way to run the same case."""

    schedule: Schedule
    threads: int
    fused: bool

    def __str__(self) -> str:
        fused = "fused" if self.fused else "not fused"
        threads = "all threads" if not self.threads else f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        return f"{schedule_text(self.schedule)}, {fused}, {threads}"


class AirfoilVerification:
    """Sizes of the mesh, agreement with the reference device, published residuals."""

    title = "Airfoil: published residuals, agreement of devices and strategies"
    options = RankedOptions

    def run(self, options: RankedOptions, tell: Tell) -> Iterator[Check]:
        """Yield the checks as they are done."""
        yield from self._conformance(options, tell)
        tell("building the mesh of 720,000 cells")
        mesh = airfoil_part(options.context(), 400, 600)
        yield from _mesh_checks(mesh)
        yield from self._residuals(options, mesh, tell)

    def _conformance(self, options: RankedOptions, tell: Tell) -> Iterator[Check]:
        """Compare the state after some iterations on a small mesh with that of the reference device."""
        mesh = airfoil_mesh(*_SMALL)
        tell(f"{len(mesh.cell_nodes):,} cells on the reference device")
        wanted = _state(mesh, Context("reference"), _Way(Schedule(), 1, False))
        for way in _small_ways(options):
            found = _state(mesh, options.context(way.threads, tuning=False), way)
            error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
            yield Check(
                f"state after {_SMALL_STEPS} iterations, largest deviation ({way})",
                error, 0.0, _ROUNDING, "the kernels run as Python (reference device)",
            )  # fmt: skip
            again = _state(mesh, options.context(way.threads, tuning=False), way)
            yield Check(
                f"repeated, values that differ ({way})", float((found != again).sum()), 0.0, 0.0,
                "bitwise repeatable for a given plan",
            )  # fmt: skip

    def _residuals(self, options: RankedOptions, mesh: AirfoilMesh | DistributedMesh, tell: Tell) -> Iterator[Check]:
        """Compare residuals on the published mesh."""
        ways = [_Way(Schedule(), options.threads, True)]
        if options.full:
            ways += [_Way(Schedule(), options.threads, False)]
            ways += [_Way(parse_schedule(name), options.threads, False) for name in _STRATEGIES]
            ways += [_Way(Schedule(), 1, True)]
        for number, way in enumerate(ways):
            tell(f"720,000 cells: {way}")
            context = options.context(way.threads)
            runner = Airfoil(context, mesh, AirfoilConstants(), schedule=way.schedule, fused=way.fused)
            for _ in range(100):
                runner.iterate()
            if not options.full or number == 0:
                yield Check(
                    f"residual after 100 iterations ({way})", runner.rms(), RMS_100, 1e-9,
                    f"{_OP2}, OP2's own program, compiled and run",
                )  # fmt: skip
            if not options.full:
                return
            for _ in range(900):
                runner.iterate()
            yield Check(
                f"residual after 1000 iterations ({way})", runner.rms(), RMS_1000, 1e-7,
                f"{_OP2}, published, pass within 1e-5 per cent",
            )  # fmt: skip


def _mesh_checks(mesh: AirfoilMesh | DistributedMesh) -> Iterator[Check]:
    """Compare the sizes of the mesh."""
    sizes = {name: part if isinstance(part, int) else part.total for name, part in mesh.sets.items()}
    found = {"boundary_edges" if name == "bedges" else name: count for name, count in sizes.items()}
    published = {"nodes": 721_801, "cells": 720_000, "edges": 1_438_600, "boundary_edges": 2_800}
    for name, count in found.items():
        yield Check(f"{name.replace('_', ' ')} of the mesh", count, published[name], 0.0, _OP2)


def _small_ways(options: RankedOptions) -> list[_Way]:
    """Return the ways to compare on the small mesh."""
    if options.device == "reference":
        return [_Way(Schedule(), 1, False)]
    ways = [_Way(Schedule(), 1, False), _Way(Schedule(), options.threads, True)]
    names = ["block_colour, block=64", "gather, block=256"]
    if options.full:
        names += ["serial", "gather, block=1", "two_pass", "element_colour", "block_permute, block=64", "gather"]
    return ways + [_Way(parse_schedule(name), options.threads, False) for name in names]


def _state(mesh: AirfoilMesh, context: Context, way: _Way) -> np.ndarray:
    """Return density, velocity, pressure and energy after some iterations, one row a cell, on every rank."""
    comm = context.comm
    part = distribute(mesh, comm) if comm.size > 1 else mesh
    runner = Airfoil(context, part, AirfoilConstants(), schedule=way.schedule, fused=way.fused)
    for _ in range(_SMALL_STEPS):
        runner.iterate()
    fields = comm.broadcast(gathered(comm, runner.cells.part, runner.fields()))
    parts = [fields[name].reshape(runner.cells.total, -1) for name in ("density", "velocity", "pressure", "energy")]
    return np.concatenate(parts, axis=1).copy()
