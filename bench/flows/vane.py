"""A turbine vane in a plane cascade, turbulent (Spalart and Allmaras): mesh_vki_turbine.su2 of the shared data.

    python bench/flows/vane.py --mesh mesh_vki_turbine.su2 --json FILE --picture PNG --save FILE

Total pressure 90.4 kPa and temperature 404.1 K ahead, along the axis, 52.3 kPa behind; the sides are one another moved
by the pitch. Newton's method finds the flow of first order; steps of sweeps bring it to second order, long enough for
the wake of the thick trailing edge not to shed vortices; then the limiter's shares stay, and Newton's method ends it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import fluxloom as fl
from fluxloom.fv.compressible.boundary import NoSlipWall, PressureOutlet, TotalInlet
from fluxloom.fv.compressible.gas import Gas, Sutherland, mach_of_pressure_ratio, total_pressure_ratio
from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.gradients.limiters import Venkatakrishnan
from fluxloom.mesh import MeshData, read_data
from fluxloom.mesh.ranks.wall_distance import wall_distance, wall_faces
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.implicit import Implicit, SteadySteps
from fluxloom.solvers.compressible.scheme import CompressibleScheme

AHEAD, WARM, BEHIND, PITCH = 90.4e3, 404.1, 52.3e3, 0.05749995
"""Total pressure, Pa, and temperature, K, of the inlet, pressure of the outlet, Pa; from vane to vane, m."""
EDDIES = 6.93e-5
"""Of the model's variable at the inlet, some 2.3 times the kinematic viscosity there, m^2/s."""
GAS = Gas(viscosity=Sutherland())
FIRST = Implicit(cfl=50.0)
SECOND = Implicit(cfl=50.0, sweeps=20, sweeps_max=40, switch=1e-5, patience=60)
_SLOW, _STIFF = 0.15, 0.1
"""Mach number at the start; of the model's variable there, m^2/s: so much that nothing is shed."""


def vane(mesh: MeshData, order: int, device: str = "cpu", eddies: float = EDDIES) -> CompressibleFlow:
    """Return the flow, slow along the axis, with a value of the model's variable."""
    volumes = control_volumes(mesh, [("periodic_1", "periodic_2")])
    temperature = WARM / (1.0 + 0.5 * (GAS.gamma - 1.0) * _SLOW**2)
    pressure = AHEAD / float(total_pressure_ratio(_SLOW, GAS.gamma))
    density = pressure / (GAS.constant * temperature)
    boundaries = {
        "inflow": TotalInlet(AHEAD, WARM, (1.0, 0.0), EDDIES),
        "outflow": PressureOutlet(BEHIND, EDDIES),
        "airfoil": NoSlipWall(),
    }
    distance = wall_distance(volumes.centres[: volumes.cells], *wall_faces(mesh, ["airfoil"]))
    scheme = CompressibleScheme(order=order, turbulence=SpalartAllmaras(),
                                limiter=Venkatakrishnan(length=0.04, unlimited=0.3))  # fmt: skip
    flow = CompressibleFlow(fl.Context(device), volumes, boundaries, GAS, scheme, distance)
    speed = _SLOW * (GAS.gamma * GAS.constant * temperature) ** 0.5
    flow.start(np.array([density, speed, 0.0, pressure, eddies]))
    return flow


def marched(flow: CompressibleFlow, how: Implicit, first: float, drop: float, most: int) -> tuple[int, float]:
    """Make steps until the residual is a part of a first one; return how many, and the part."""
    steps = SteadySteps(flow, how)
    total, count = steps.begin().total, 0
    while total > drop * first and count < most:
        total, count = steps.step().total, count + 1
        if count % 20 == 0:
            print(f"order {flow.scheme.order}, step {count}: {total / first:.3e} of the first residual", flush=True)
    return count, total / first


def through(flow: CompressibleFlow, patch: str) -> dict[str, float]:
    """Return what passes a patch: mass flow out; averages by mass of angle, total pressure and total temperature."""
    volumes, gamma = flow.volumes, GAS.gamma
    span = volumes.patches[patch]
    w, flux = flow.w.read()[span.start : span.stop], flow.outflow.read()[span.start : span.stop]
    first = span.start - volumes.cells + volumes.interior
    mass = volumes.area[first : first + len(span)] * flux[:, 0]
    mach = np.hypot(w[:, 1], w[:, 2]) / GAS.sound(w[:, :4])
    total = w[:, 3] * np.asarray(total_pressure_ratio(mach, gamma))
    warmth = GAS.temperature(w[:, :4]) * (1.0 + 0.5 * (gamma - 1.0) * mach**2)
    u, v, p0, t0 = (float(mass @ q / mass.sum()) for q in (w[:, 1], w[:, 2], total, warmth))
    angle = float(np.degrees(np.arctan2(v, u)))
    return {"mass_flow": float(mass.sum()), "angle": angle, "total_pressure": p0, "total_temperature": t0}


def results(flow: CompressibleFlow) -> dict[str, float]:
    """Return mass flow and its imbalance, the angle behind, and the loss of total pressure over its rest behind."""
    flow.before()
    ahead, behind = through(flow, "inflow"), through(flow, "outflow")
    lost = ahead["total_pressure"] - behind["total_pressure"]
    return {
        "mass_flow": behind["mass_flow"],
        "imbalance": (ahead["mass_flow"] + behind["mass_flow"]) / behind["mass_flow"],
        "angle": behind["angle"],
        "loss": lost / (behind["total_pressure"] - BEHIND),
        "total_pressure": behind["total_pressure"],
        "total_temperature": behind["total_temperature"],
    }


def draw(flow: CompressibleFlow, path: Path) -> None:
    """Draw the isentropic Mach number along the vane, and the Mach number in three passages."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    volumes, w = flow.volumes, flow.w.read()
    span = volumes.patches["airfoil"]
    x, p = volumes.centres[span.start : span.stop, 0], w[span.start : span.stop, 3]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), width_ratios=(1, 1.2))
    left.plot(x / x.max(), mach_of_pressure_ratio(AHEAD / np.minimum(p, AHEAD), GAS.gamma), ".", markersize=4)
    left.set(xlabel="x / axial chord", ylabel="isentropic Mach number", title="Along the vane")
    left.grid(alpha=0.3)
    cells = w[: volumes.cells]
    mach = np.hypot(cells[:, 1], cells[:, 2]) / GAS.sound(cells[:, :4])
    place = volumes.centres[: volumes.cells]
    for k in (-1, 0, 1):
        drawn = right.scatter(place[:, 0], place[:, 1] + k * PITCH, c=mach, s=0.6, vmin=0.0, vmax=1.05, cmap="viridis")
    figure.colorbar(drawn, ax=right)
    right.set(aspect="equal", title="Mach number", xlabel="x, m", ylabel="y, m")
    figure.tight_layout()
    figure.savefig(path, dpi=90)


def main() -> None:
    """Run the case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mesh", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=900, help="of second order, at most")
    parser.add_argument("--drop", type=float, default=1e-11, help="part of the first residual to end at")
    parser.add_argument("--start", type=Path, help="states of second order to go on with")
    for name in ("json", "picture", "save"):
        parser.add_argument(f"--{name}", type=Path)
    given = parser.parse_args()
    begin, mesh = time.perf_counter(), read_data(given.mesh)
    flow = vane(mesh, 2, given.device)
    first = SteadySteps(flow, SECOND).begin().total
    counts: list[int] = []
    print(f"residual of a slow uniform flow: {first:.3e}", flush=True)
    if given.start:
        flow.start(np.load(given.start))
    else:
        rough = vane(mesh, 1, given.device, _STIFF)
        counts.append(marched(rough, FIRST, first, 1e-10, 100)[0])
        flow.start(rough.states())
    count, fall = marched(flow, SECOND, first, given.drop, given.steps)
    found = {
        **results(flow), "residual": fall, "steps": [*counts, count], "seconds": time.perf_counter() - begin,
    }  # fmt: skip
    print(json.dumps(found, indent=2))
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n")
    if given.save:
        np.save(given.save, flow.states())
    if given.picture:
        draw(flow, given.picture)


if __name__ == "__main__":
    main()
