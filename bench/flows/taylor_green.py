"""The vortices of Taylor and Green at Re = 1600 as a direct numerical simulation: how fast kinetic energy is lost.

    python bench/flows/taylor_green.py --cells 256 --octant --device cuda --json FILE
    python bench/flows/taylor_green.py --draw FILE FILE --reference TGV_Re1600.dat --picture PNG

The whole box has a side of 2 pi and is periodic. Planes of symmetry at the multiples of pi divide it into eight alike
octants, of which ``--octant`` computes one: with as many cells, the mesh is twice as fine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import fluxloom as fl
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.incompressible.boundary import Symmetry
from fluxloom.linalg import Jacobi, SmoothedAggregation, Stop
from fluxloom.mesh import box3d
from fluxloom.solvers.incompressible.flow import Incompressible

REYNOLDS, EVERY = 1600.0, 10
PEAK = (8.98, 1.285649e-2)
"""Time and height of the peak of the dissipation, by 512^3 spectral and compact differences (Xcompact3d)."""
PERIODIC = [("xmin", "xmax"), ("ymin", "ymax"), ("zmin", "zmax")]


def vortices(x: np.ndarray) -> np.ndarray:
    """Return the initial velocity."""
    sx, cx, sy, cy, cz = np.sin(x[:, 0]), np.cos(x[:, 0]), np.sin(x[:, 1]), np.cos(x[:, 1]), np.cos(x[:, 2])
    return np.stack([sx * cy * cz, -cx * sy * cz, 0.0 * sx], axis=1)


def built(given: argparse.Namespace) -> Incompressible:
    """Return the flow at the start."""
    side = np.pi if given.octant else 2.0 * np.pi
    mesh = box3d(given.cells, given.cells, given.cells, [side] * 3)
    volumes = control_volumes(mesh, [] if given.octant else PERIODIC)
    flow = Incompressible(
        fl.Context(given.device), volumes, 1.0 / REYNOLDS, {name: Symmetry() for name in volumes.patches},
        stop=Stop(rtol=1e-4), preconditioner=SmoothedAggregation() if given.multigrid else Jacobi(),
    )  # fmt: skip
    flow.initialise(vortices).require("initial velocity")
    return flow


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Advance to the end; return times and mean kinetic energies, and what it took."""
    begin = time.perf_counter()
    flow = built(given)
    ready = time.perf_counter()
    volume = float(flow.volumes.volumes.sum())
    rows, iterations, dt = [], 0, 0.0
    while flow.time < given.end:
        if flow.steps % EVERY == 0:
            dt, state = flow.stable_step(c1=given.courant), flow.state()
            rows.append((flow.time, state.kinetic_energy / volume, state.imbalance))
            if flow.steps % (20 * EVERY) == 0:
                print(f"t = {flow.time:.3f}, E = {rows[-1][1]:.6f}, {time.perf_counter() - ready:.0f} s", flush=True)
        iterations += flow.step(dt).require("pressure").iterations
    done = time.perf_counter()
    table = np.array(rows)
    lost = -np.gradient(table[:, 1], table[:, 0])
    k = int(lost.argmax())
    return {
        "case": "taylor_green", "cells": given.cells**3, "octant": given.octant, "device": given.device,
        "device_name": flow.context.device.describe(),
        "reynolds": REYNOLDS, "courant": given.courant, "steps": flow.steps, "iterations": iterations / flow.steps,
        "setup_seconds": ready - begin, "seconds": done - ready, "seconds_per_step": (done - ready) / flow.steps,
        "peak_time": float(table[k, 0]), "peak": float(lost[k]), "error": float(lost[k] / PEAK[1] - 1.0),
        "imbalance": float(table[:, 2].max()), "rows": [[float(v) for v in row[:2]] for row in rows],
    }  # fmt: skip


def draw(given: argparse.Namespace) -> None:
    """Draw the dissipation of several runs over the reference."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
    if given.reference:
        table = np.loadtxt(given.reference)
        axes.plot(table[:, 0], 1e3 * table[:, 2], "k-", linewidth=2.5, alpha=0.35, label="DNS, 512³ (Xcompact3d)")
    for name in given.draw:
        found = json.loads(Path(name).read_text())
        table = np.array(found["rows"])
        side = round(found["cells"] ** (1 / 3))
        label = f"{side}³ cells, {'octant' if found['octant'] else 'whole box'}: peak {100 * found['error']:+.1f} %"
        axes.plot(table[:, 0], -1e3 * np.gradient(table[:, 1], table[:, 0]), label=label)
    axes.set(xlabel="t", ylabel="$-10^3$ dE/dt", xlim=(0, 10), ylim=(0, None), title="Taylor-Green vortices, Re = 1600")
    axes.legend()
    figure.savefig(given.picture, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=64, help="along each side")
    parser.add_argument("--octant", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--end", type=float, default=10.0)
    parser.add_argument("--courant", type=float, default=0.5)
    parser.add_argument("--jacobi", dest="multigrid", action="store_false", help="instead of multigrid")
    parser.add_argument("--json")
    parser.add_argument("--draw", nargs="+", metavar="FILE", help="draw what --json wrote, and do nothing else")
    parser.add_argument("--reference", help="columns: time, energy, dissipation")
    parser.add_argument("--picture", default="taylor_green.png")
    given = parser.parse_args()
    if given.draw:
        draw(given)
        return
    found = run(given)
    print({key: value for key, value in found.items() if key != "rows"})
    if given.json:
        Path(given.json).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
