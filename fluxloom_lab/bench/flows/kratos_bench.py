"""The benchmark of the lid-driven cavity of tetrahedra: Kratos Multiphysics, and our solvers on its mesh and steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from fluxloom.core.errors import CaseError, FluxloomError, did_you_mean
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom.mesh import box3d, read_data
from fluxloom.mesh.data.mesh import MeshData
from fluxloom_lab.bench.base import Record, Tell, device_name
from fluxloom_lab.bench.options import BenchOptions, cells_option, iterations_option, rounds_option
from fluxloom_lab.options import option
from fluxloom_lab.peers.kratos import Kratos, find_kratos
from fluxloom_lab.peers.kratos_case import PRESSURE_SOLVERS, KratosCase
from fluxloom_lab.problems.tetra_cavity import Profiles, TetraCavity
from fluxloom_lab.problems.tetra_flows import OURS, CavityRun, ours, require_finite

__all__ = ["KratosBench"]

SIDE, STEPS = 12, 50
"""Intervals a side of a box by default, and steps."""

VISCOSITY, TOLERANCE, COURANT = 0.01, 1e-6, 0.5
SKIPPED = 3
"""First steps that are not timed."""

_SECONDS = 4 * 3600.0

Rows = dict[str, tuple[dict[str, Any], Profiles | None]]


@dataclass(frozen=True)
class KratosOptions(BenchOptions):
    """Options of the benchmark ``kratos``."""

    cells: str = cells_option("Intervals a side of the box.", "N")
    mesh: str = option("", metavar="FILE", help="Mesh of a file, in place of a box.")
    iterations: int = iterations_option("Steps")
    rounds: int = rounds_option("Must be left out: the steps of one run are timed")
    model: str = option("", metavar="NAME", help="Ours to measure: edges.")
    python: str = option("", metavar="FILE", help="Interpreter that has Kratos.")


class KratosBench:
    """Steps of the flow in the unit cube under a lid, Re = 100, from rest, each half a tetrahedron long.

    Kratos: its ``FractionalStep`` element, implicit steps, one pressure solve each, in a program of its own. Ours:
    those of `fluxloom_lab.problems.tetra_flows`. Everybody has the same tetrahedra, steps and tolerance of the
    pressure; what is compared at the end are the profiles on two centre lines and the force on the lid.
    """

    title = "Steps of the lid-driven cavity of tetrahedra, beside Kratos Multiphysics"
    options = KratosOptions

    def run(self, options: KratosOptions, tell: Tell) -> Record:
        """Measure."""
        context, steps, names = options.context(), _steps(options), _chosen(options.model)
        if context.device.name != "cpu":
            raise CaseError("kratos runs on the cores of a processor: give --device cpu and --threads")
        kratos = find_kratos(options.python)
        run = _plan(_mesh(options), steps)
        meter = meter_for(context.device, context.threads)
        copies = [meter.measure().copy_gbs]
        mesh = run.cavity.mesh
        tell(f"{mesh.n_points} points, {mesh.n_cells} tetrahedra, {steps} steps of {run.dt:g} on {context!r}")
        flows = {name: _tried(name, partial(_ours, context, run, name), tell) for name in names}
        peers = {f"kratos {name}": _tried(f"kratos {name}", partial(_theirs, kratos, run, context.threads, name), tell)
                 for name in PRESSURE_SOLVERS}  # fmt: skip
        copies.append(meter.measure().copy_gbs)
        return _record(options, context, run, flows, peers, median(copies))


def _steps(options: KratosOptions) -> int:
    """Return the number of steps.

    Raises
    ------
    CaseError
        If none is left to be timed, or rounds are asked for.
    """
    if options.rounds:
        raise CaseError("kratos has no rounds: each step is timed; give --iterations, the number of steps")
    steps = options.iterations or STEPS
    if steps <= SKIPPED:
        raise CaseError(f"--iterations {steps}: the first {SKIPPED} steps are not timed, give more")
    return steps


def _chosen(model: str) -> tuple[str, ...]:
    """Return the names of our flows, all or those whose name has a model before its comma.

    Raises
    ------
    CaseError
        If there is no such model.
    """
    known = tuple(dict.fromkeys(name.partition(",")[0] for name in OURS))
    if model and model not in known:
        raise CaseError(f"--model {model!r}{did_you_mean(model, known)} (allowed: {', '.join(known)})")
    return tuple(name for name in OURS if not model or name.partition(",")[0] == model)


def _mesh(options: KratosOptions) -> MeshData:
    """Return the mesh of a file, or a box whose cubes are cut into tetrahedra.

    Raises
    ------
    CaseError
        If ``--cells`` is no number of intervals, or stands beside a file.
    """
    text = options.cells or str(SIDE)
    if options.mesh:
        if options.cells:
            raise CaseError("--mesh reads a mesh, --cells is of a box: give one of them")
        return read_data(options.mesh)
    n = int(text) if text.isascii() and text.isdigit() else 0
    if not 2 <= n <= 256:
        raise CaseError(f"--cells {text!r}: the intervals a side of a box, from 2 to 256")
    return box3d(n, n, n, kind="tetra")


def _plan(mesh: MeshData, steps: int) -> CavityRun:
    cavity = TetraCavity(mesh)
    return CavityRun(cavity, VISCOSITY, cavity.step(COURANT), steps, TOLERANCE)


def _tried(
    name: str, run: Callable[[], tuple[dict[str, Any], Profiles]], tell: Tell
) -> tuple[dict[str, Any], Profiles | None]:
    """Return the row and the profiles of a flow, or a row with the error."""
    try:
        row, profiles = run()
    except FluxloomError as error:
        tell(f"{name}: {error}")
        return {"flow": name, "error": str(error)}, None
    iterations = row["pressure_iterations"]
    tell(f"{name}: {row['ms_per_step']:.4g} ms a step, {iterations:.1f} iterations, drag {row['drag']:.5g}")
    return {"flow": name} | row, profiles


def _ours(context: Context, run: CavityRun, name: str) -> tuple[dict[str, Any], Profiles]:
    """Run a flow of ours."""
    found = ours(context, run, name)
    return _times(found.seconds, found.cpu_seconds, found.iterations, found.profiles) | dict(
        found.details
    ), found.profiles


def _theirs(kratos: Kratos, run: CavityRun, threads: int, pressure: str) -> tuple[dict[str, Any], Profiles]:
    """Run Kratos."""
    cavity = run.cavity
    case = KratosCase(cavity, run.viscosity, run.dt, run.steps, pressure, run.tolerance)
    with TemporaryDirectory(prefix="fluxloom-kratos-") as folder:
        flow = kratos.run(case, Path(folder), threads, _SECONDS)
    log, profiles = flow.log, cavity.profiles(flow.velocity, run.viscosity)
    require_finite("Kratos", profiles)
    whole, middle = cavity.held(flow.reaction)
    row = _times(log.seconds, log.cpu_seconds, sum(log.iterations) / run.steps, profiles) | {
        "momentum_ms": _milliseconds(log.momentum), "pressure_ms": _milliseconds(log.pressure),
        "momentum_solves": log.sweeps / run.steps,
        "reaction": whole, "middle_reaction": middle, "version": log.version,
    }  # fmt: skip
    return row, profiles


def _times(
    seconds: Sequence[float], cpu_seconds: Sequence[float], iterations: float, profiles: Profiles
) -> dict[str, Any]:
    """Return what every row has."""
    timed = seconds[SKIPPED:]
    return {
        "ms_per_step": _milliseconds(seconds),
        "ms_per_step_best": 1e3 * min(timed),
        "ms_per_step_worst": 1e3 * max(timed),
        "cpu_ms_per_step": _milliseconds(cpu_seconds),
        "pressure_iterations": iterations,
        "drag": profiles.drag,
        "middle_drag": profiles.middle_drag,
    }


def _milliseconds(seconds: Sequence[float]) -> float:
    """Return the median of the steps that count."""
    return 1e3 * median(seconds[SKIPPED:])


def _record(
    options: KratosOptions, context: Context, run: CavityRun, flows: Rows, peers: Rows, copy_gbs: float
) -> Record:
    """Return the record.

    Raises
    ------
    CaseError
        If none of our flows made the steps.
    """
    best = _best(flows, "ms_per_step")
    if best is None:
        raise CaseError(f"kratos: none of {', '.join(flows)} made the steps")
    mesh = run.cavity.mesh
    compared = _compared(flows, peers)
    return Record(
        case="kratos", model="lid-driven cavity of tetrahedra, Re = 100", device=context.device.name,
        device_name=device_name(context), precision="float64",
        sizes={"cells": mesh.n_cells, "points": mesh.n_points}, copy_gbs=copy_gbs,
        seconds=1e-3 * best["ms_per_step"],
        metrics={
            "ms_per_step": best["ms_per_step"], "best": best["flow"], **compared, "threads": context.threads,
            "dt": run.dt, "steps": run.steps, "time": run.steps * run.dt, "rtol": run.tolerance,
            "viscosity": run.viscosity, "mesh": options.mesh or mesh.source.path,
            "flows": [row for row, _ in flows.values()], "peers": [row for row, _ in peers.values()],
            "differences": _differences(flows, peers),
        },
        loops=(), command=options.command,
    )  # fmt: skip


def _best(rows: Rows, key: str) -> dict[str, Any] | None:
    """Return the row of the flow with the least of a number."""
    made = [row for row, _ in rows.values() if key in row]
    return min(made, key=lambda row: row[key], default=None)


def _compared(flows: Rows, peers: Rows) -> dict[str, float]:
    """Return the time of Kratos over ours: of the medians, of the fastest steps, of all threads together."""
    found = {}
    for ending, key in {"": "ms_per_step", "_fastest": "ms_per_step_best", "_cpu": "cpu_ms_per_step"}.items():
        mine, theirs = _best(flows, key), _best(peers, key)
        if mine is not None and theirs is not None:
            found[f"kratos_over_best{ending}"] = theirs[key] / mine[key]
    return found


def _differences(flows: Rows, peers: Rows) -> list[dict[str, Any]]:
    """Return how far each flow of ours is from each of Kratos that made the steps."""
    return [
        {"flow": name, "from": peer} | theirs.differences(mine)
        for peer, (_, theirs) in peers.items() if theirs is not None
        for name, (_, mine) in flows.items() if mine is not None
    ]  # fmt: skip
