"""Turbulent channel flow at Re_tau = 180, directly simulated: profiles of the mean velocity and of fluctuations.

    python bench/flows/channel.py --cells 128 96 128 --device cuda --json FILE
    python bench/flows/channel.py --draw FILE --reference FOLDER --picture PNG

Lengths are in half heights, velocities in friction velocities; a constant force drives the flow. The folder of the
reference has the tables ``chan180.means`` and ``chan180.reystress`` of Moser, Kim and Mansour (1999).
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
from fluxloom.fv.incompressible.boundary import NoSlip
from fluxloom.linalg import SmoothedAggregation, Stop
from fluxloom.mesh import box3d
from fluxloom.monitors.running_means import Profile, RunningMeans

REYNOLDS = 178.12
"""Of the reference."""
EVERY = 10
MODES, AMPLITUDE = 40, 0.6


def start(lengths: tuple[float, float]) -> Any:
    """Return a velocity as a function of places: Reichardt's profile with waves of all directions on it."""
    random = np.random.default_rng(3)
    waves = [
        (random.integers(0, 5), random.integers(1, 6), random.integers(1, 4), random.uniform(0, 2 * np.pi),
         AMPLITUDE * random.standard_normal(3)) for _ in range(MODES)
    ]  # fmt: skip

    def velocity(x: np.ndarray) -> np.ndarray:
        wall = (1.0 - np.abs(x[:, 1])) * REYNOLDS
        found = np.zeros(x.shape)
        found[:, 0] = np.log(1.0 + 0.4 * wall) / 0.4
        found[:, 0] += 7.8 * (1.0 - np.exp(-wall / 11.0) - wall / 11.0 * np.exp(-wall / 3.0))
        for i, k, j, phase, size in waves:
            turn = 2.0 * np.pi * (i * x[:, 0] / lengths[0] + k * x[:, 2] / lengths[1]) + phase
            shape = np.cos(turn) * np.sin(0.5 * j * np.pi * (x[:, 1] + 1.0)) * (1.0 - x[:, 1] ** 2)
            found += shape[:, None] * size
        return found

    return velocity


def built(given: argparse.Namespace) -> fl.Incompressible:
    """Return the flow at the start."""
    nx, ny, nz = given.cells
    length, width = given.lengths
    y = np.tanh(given.stretch * np.linspace(-1.0, 1.0, ny + 1)) / np.tanh(given.stretch)
    y[[0, -1]] = -1.0, 1.0
    mesh = box3d(nx, ny, nz, (length, 2.0, width), origin=(0.0, -1.0, 0.0), axes=(None, y, None))
    return fl.Incompressible(
        fl.Domain(mesh, [("xmin", "xmax"), ("zmin", "zmax")]), fl.Context(given.device), viscosity=1.0 / REYNOLDS,
        boundaries={"ymin": NoSlip(), "ymax": NoSlip()}, start=start((length, width)), force=(1.0, 0.0, 0.0),
        pressure=fl.Pressure(stop=Stop(rtol=1e-3), preconditioner=SmoothedAggregation()),
    )  # fmt: skip


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Advance until the flow has forgotten its start, then sample; return profiles over both halves."""
    begin = time.perf_counter()
    whole = built(given)
    flow, ready = whole.solver, time.perf_counter()
    volume, iterations, rows = float(flow.volumes.volumes.sum()), 0, []
    statistics = RunningMeans(whole.averaged())
    dt, end = 0.0, given.develop + given.sample
    while flow.time < end and (flow.time < given.develop or time.perf_counter() - begin < given.limit):
        if flow.steps % EVERY == 0:
            dt = flow.stable_step(given.courant, given.diffusion)
        iterations += flow.step(dt).require("pressure").iterations
        if flow.steps % EVERY == 0 and flow.time >= given.develop:
            statistics.sample(EVERY * dt)
        if flow.steps % (100 * EVERY) == 0:
            state = flow.state()
            rows.append((flow.time, state.momentum[0] / volume, state.kinetic_energy / volume))
            print(f"t = {flow.time:.2f}, U = {rows[-1][1]:.3f}, {time.perf_counter() - ready:.0f} s", flush=True)
    done = time.perf_counter()
    profile = statistics.profile("y")
    return {
        "case": "channel", "cells": list(given.cells), "lengths": list(given.lengths), "device": given.device,
        "reynolds": REYNOLDS, "stretch": given.stretch, "courant": given.courant, "diffusion": given.diffusion,
        "steps": flow.steps,
        "iterations": iterations / flow.steps, "setup_seconds": ready - begin, "seconds": done - ready,
        "seconds_per_step": (done - ready) / flow.steps, "end": flow.time, "averaged": statistics.weight,
        "rows": [[float(v) for v in row] for row in rows], "y": profile.coordinate.tolist(),
        "velocity": np.stack([profile[name] for name in "uvw"], axis=1).tolist(), "stress": stress_of(profile).tolist(),
    }  # fmt: skip


def stress_of(profile: Profile) -> np.ndarray:
    """Return Reynolds's stresses of a profile, ``(n, 3, 3)``."""
    pairs = [[profile[f"{a}_rms"] ** 2 if a == b else profile["".join(sorted((a, b)))] for b in "uvw"] for a in "uvw"]
    return np.moveaxis(np.array(pairs), 2, 0)


def halves(found: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return wall distance, mean velocity, and ``u', v', w', -u'v'``, both halves averaged, in wall units."""
    y, u, stress = (np.array(found[key]) for key in ("y", "velocity", "stress"))
    n = len(y) // 2
    lower, upper = slice(0, n), slice(len(y) - 1, len(y) - 1 - n, -1)
    rms = np.sqrt(np.einsum("nii->ni", 0.5 * (stress[lower] + stress[upper])))
    shear = 0.5 * (stress[upper, 0, 1] - stress[lower, 0, 1])
    return (1.0 + y[lower]) * found["reynolds"], 0.5 * (u[lower, 0] + u[upper, 0]), np.column_stack([rms, shear])


def compared(found: dict[str, Any], folder: Path) -> dict[str, float]:
    """Return how far profiles are from the reference, relative."""
    means, stress = np.loadtxt(folder / "chan180.means"), np.loadtxt(folder / "chan180.reystress")
    wall, u, rest = halves(found)
    inside = (means[:, 1] >= wall[0]) & (means[:, 1] <= wall[-1])
    off = np.interp(means[inside, 1], wall, u) / means[inside, 2] - 1.0
    result = {"mean": float(np.abs(off).max()), "centre": float(u[-1] / means[-1, 2] - 1.0)}
    for k, name in enumerate(("u", "v", "w")):
        result[f"{name}_peak"] = float(rest[:, k].max() / np.sqrt(stress[:, 2 + k].max()) - 1.0)
    result["shear_peak"] = float(rest[:, 3].max() / -stress[:, 5].min() - 1.0)
    return result


def draw(given: argparse.Namespace) -> None:
    """Draw profiles over the reference."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    folder = Path(given.reference)
    means, stress = np.loadtxt(folder / "chan180.means"), np.loadtxt(folder / "chan180.reystress")
    found = json.loads(Path(given.draw).read_text())
    wall, u, rest = halves(found)
    print(compared(found, folder))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.2), layout="constrained")
    left.semilogx(means[1:, 1], means[1:, 2], "k-", linewidth=3, alpha=0.35, label="Moser, Kim, Mansour 1999")
    left.semilogx(wall, u, label="Fluxloom, " + "×".join(map(str, found["cells"])))
    left.set(xlabel="$y^+$", ylabel="$U^+$")
    left.legend()
    for k, name in enumerate(("u'", "v'", "w'", "-u'v'")):
        known = np.sqrt(stress[:, 2 + k]) if k < 3 else -stress[:, 5]
        right.plot(stress[:, 1], known, "k-", linewidth=3, alpha=0.35)
        right.plot(wall, rest[:, k], label=name)
    right.set(xlabel="$y^+$", ylabel="fluctuations")
    right.legend()
    figure.savefig(given.picture, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, nargs=3, default=(128, 96, 128))
    parser.add_argument("--lengths", type=float, nargs=2, default=(2.0 * np.pi, np.pi), help="along x and z")
    parser.add_argument("--stretch", type=float, default=1.7, help="of the hyperbolic tangent along y")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--courant", type=float, default=0.45)
    parser.add_argument("--diffusion", type=float, default=0.42, help="Adams and Bashforth's method allows 0.5")
    parser.add_argument("--develop", type=float, default=10.0, help="time before samples, in h / u_tau")
    parser.add_argument("--sample", type=float, default=20.0)
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which what there is is written")
    parser.add_argument("--json")
    parser.add_argument("--draw", metavar="FILE", help="draw what --json wrote, and do nothing else")
    parser.add_argument("--reference", metavar="FOLDER")
    parser.add_argument("--picture", default="channel.png")
    given = parser.parse_args()
    if given.draw:
        draw(given)
        return
    found = run(given)
    if given.json:
        Path(given.json).write_text(json.dumps(found))
    print({key: value for key, value in found.items() if not isinstance(value, list)})


if __name__ == "__main__":
    main()
