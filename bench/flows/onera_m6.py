"""The ONERA M6 wing at M = 0.8395 and 3.06 degrees: inviscid, or turbulent at Re = 11.72e6 (Spalart and Allmaras).

    python bench/flows/onera_m6.py --mesh om6_inviscid_medium.su2.gz --device cuda --json FILE
    python bench/flows/onera_m6.py --wing medium --model sa --first-order 100 --device cuda --seconds 120 \\
        --option krylov=0 sweeps=6 cfl=30 --json FILE

Turbulent flow has meshes of its own (`fluxloom_lab.problems.wing`). Its thin cells want sweeps alone, whose CFL number
falls to about 5 by itself: on H200 lift and drag stand within 0.1 per cent after 4400 steps, 87 s.

Forces are in units of the published planform (root chord 0.8059 m, half span 1.1963 m, 0.7532 m^2). A run ends where
the residual has fallen far enough, or its time is over; ``--save`` keeps the states, with which ``--start`` goes on.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import fluxloom as fl
from fluxloom.fv.compressible.fluxes import Flux
from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras
from fluxloom.fv.time_schemes import RK5
from fluxloom.mesh import read_data, refine
from fluxloom.mesh.generate.cluster import Clustering, cluster
from fluxloom.solvers.compressible.cycles import Multigrid
from fluxloom.solvers.compressible.implicit import Implicit, ImplicitStep, SteadySteps
from fluxloom.solvers.compressible.multigrid import MultigridSteps
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom_lab.problems.wing import wing_mesh
from fluxloom_lab.verify.compressible.wing_case import ALPHA, AREA, Wing
from fluxloom_lab.verify.compressible.wing_data import MACH, STATIONS
from fluxloom_lab.verify.compressible.wing_meshes import SIZES, wing_shape


def built(given: argparse.Namespace) -> Wing:
    """Return the flow at its start, when it may begin."""
    begin = time.perf_counter()
    mesh = refine(read_data(given.mesh) if given.mesh else wing_mesh(wing_shape(), given.sizes), given.refine)
    if given.mesh and given.first:
        mesh = cluster(mesh, ["wing"], Clustering(given.first, given.growth, 0, given.slope, given.spread))
    seconds = time.perf_counter() - begin
    scheme = CompressibleScheme(
        turbulence=SpalartAllmaras() if given.model == "sa" else None, time=RK5(), flux=Flux.choices[given.flux](),
        cfl=given.cfl or (2.0 if given.integrator == "explicit" else 1.0), **_pairs(given.scheme),
    )  # fmt: skip
    wing = Wing(fl.Context(given.device, threads=given.threads), mesh, scheme, given.mach)
    wing.seconds = {"mesh": seconds, **wing.seconds}
    print({"cells": mesh.n_cells, **{k: round(v, 1) for k, v in wing.seconds.items()}}, flush=True)
    while given.after and not Path(given.after).exists():
        time.sleep(0.2)
    if given.start:
        wing.resume(Path(given.start))
    if given.first_order:
        seen: list[ImplicitStep] = []

        def tell(done: ImplicitStep) -> None:
            seen.append(done)
            if len(seen) % 20 == 1:
                told = {"residual": done.total, "cfl": done.cfl, "share": done.share}
                print({"first_order": len(seen), **told}, flush=True)

        total = wing.first_order(given.first_order, tell)
        print({"first_order": given.first_order, "residual": total, **wing.coefficients()}, flush=True)
    return wing


def explicit_steps(case: Wing, count: int) -> tuple[float, dict[str, float]]:
    """Make explicit steps and return the residual."""
    case.flow.iterate(count)
    found = case.flow.residuals()
    clipped = {"clipped_faces": float(found.clipped_faces), "clipped_cells": float(found.clipped_cells)}
    return case.total(found.norms), clipped


def stepper(case: Wing, given: argparse.Namespace) -> Callable[[], tuple[float, dict[str, float]]]:
    """Return what makes some steps and returns the residual and what else is to be told."""
    flow, options = case.flow, _pairs(given.option)
    if given.integrator == "implicit":
        steps = SteadySteps(flow, Implicit(**options))

        def implicit() -> tuple[float, dict[str, float]]:
            done = steps.step()
            told = {name: float(getattr(done, name)) for name in ("cfl", "share", "products")}
            return case.total(done.norms), told

        return implicit
    if given.integrator == "multigrid":
        cycles = MultigridSteps(flow, Multigrid(**{"walls": ("wing",), **options}))
        cycles.start()

        def cycle() -> tuple[float, dict[str, float]]:
            for _ in range(given.every):
                cycles.step()
            return cycles.total(), {}

        return cycle

    return partial(explicit_steps, case, given.every)


def liveliest(case: Wing, before: np.ndarray) -> dict[str, Any]:
    """Return where the pressure has changed most since some states, and by what part of that far away."""
    now = case.flow.states()
    change = np.abs(now[:, 4] - before[:, 4]) / case.stream.pressure
    cell = int(np.argmax(np.where(np.isfinite(change), change, np.inf)))
    place = np.round(case.flow.volumes.centres[cell], 5).tolist()
    return {"watch": place, "changed": float(change[cell]), "state": now[cell].tolist()}


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Make steps until the residual has fallen, or the time is over; return forces over the steps."""
    case = built(given)
    compiled = time.perf_counter()
    case.coefficients()
    if given.warm:
        print({"warm": given.warm, "residual": explicit_steps(case, given.warm)[0]}, flush=True)
    step = stepper(case, given)
    first, rows, begin, told = case.residual(), [], 0.0, 0.0
    found: dict[str, Any] = {
        "case": "onera_m6", "mesh": Path(given.mesh).name if given.mesh else asdict(given.sizes),
        "refine": given.refine, "cells": case.mesh.n_cells, "first_height": given.first, "growth": given.growth,
        "model": given.model, "integrator": given.integrator,
        "options": _pairs(given.option), "scheme": asdict(case.flow.scheme),
        "device": given.device, "mach": given.mach, "alpha": ALPHA, "area": AREA, "setup": case.seconds,
    }  # fmt: skip
    stopped, highest = [], first
    before = case.flow.states() if given.watch else None
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))  # a limit of time: what was found is written
    while True:
        try:
            residual, more = step()
        except fl.FluxloomError as problem:  # what was found so far is kept
            print(problem, flush=True)
            found.setdefault("errors", []).append(str(problem))
            if given.integrator != "implicit" or len(found["errors"]) > 1:
                break
            step = partial(explicit_steps, case, given.every)  # refused: the states are those before the step
            continue
        if before is not None:
            more |= liveliest(case, before)
            before = case.flow.states()
        begin = begin or time.perf_counter()  # without the first step, which compiles
        seconds = time.perf_counter() - begin
        highest = max(highest, residual)
        if given.integrator != "implicit" and residual < given.freeze * highest and not case.flow.frozen:
            case.flow.freeze()
        ended = (
            residual <= given.drop * first or seconds > given.seconds or case.flow.steps >= given.steps or bool(stopped)
        )
        if len(rows) % given.forces == 0 or ended:
            more |= case.coefficients()
        rows.append({"step": case.flow.steps, "seconds": seconds, "residual": residual, **more})
        if time.perf_counter() - told > given.tell or ended:
            shown = rows[-1] | {"drop": residual / first}
            print({k: float(f"{v:.5g}") if isinstance(v, float) else v for k, v in shown.items()}, flush=True)
            told = time.perf_counter()
        if ended:
            break
    found |= {"rows": rows, "first_residual": first, "first_step_seconds": begin - compiled}
    try:
        case.flow.check()
    except fl.FluxloomError as problem:
        return found | {"errors": [*found.get("errors", []), str(problem)]}
    cuts = {
        f"{eta:g}": {"x": cut.x.tolist(), "cp": cut.cp.tolist(), "upper": cut.upper.tolist()}
        for eta, cut in zip(STATIONS, case.sections(), strict=True)
    }
    found |= {"forces": case.coefficients(), "stations": cuts, **case.along_span()}
    if given.save:
        whole = Path(given.save).with_suffix(".part.npz")
        np.savez_compressed(whole, w=case.flow.states().astype(np.float32))
        whole.rename(given.save)  # at once, as others wait for it
    return found


def _pairs(words: list[str]) -> dict[str, Any]:
    """Return ``name=value`` as a table; values are those of JSON, or words."""
    table: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            table[name] = json.loads(value)
        except json.JSONDecodeError:
            table[name] = value
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mesh", help="with the patches wing, symmetry, farfield; without it one is made")
    parser.add_argument("--wing", default="coarse", choices=SIZES, help="the mesh that is made")
    parser.add_argument("--size", nargs="*", default=[], metavar="NAME=VALUE", help="of WingMesh, other than those")
    parser.add_argument("--refine", type=int, default=0, help="how often each cell is divided")
    parser.add_argument("--first", type=float, default=0.0, help="height of the first cells; 0: as the mesh has them")
    parser.add_argument("--growth", type=float, default=1.2)
    parser.add_argument("--slope", type=float, default=0.0005)
    parser.add_argument("--spread", type=float, default=0.05)
    parser.add_argument("--model", choices=("euler", "sa"), default="euler")
    parser.add_argument("--mach", type=float, default=MACH)
    parser.add_argument("--integrator", choices=("explicit", "multigrid", "implicit"), default="implicit")
    parser.add_argument("--option", nargs="*", default=[], metavar="NAME=VALUE", help="of Implicit or Multigrid")
    parser.add_argument("--scheme", nargs="*", default=[], metavar="NAME=VALUE", help="of CompressibleScheme")
    parser.add_argument("--flux", default="roe")
    parser.add_argument("--cfl", type=float, default=0.0, help="of explicit steps, also those of multigrid")
    parser.add_argument("--warm", type=int, default=0, help="explicit steps before all others")
    parser.add_argument("--first-order", type=int, default=0, help="implicit steps of first order before all others")
    parser.add_argument("--every", type=int, default=20, help="explicit steps, or cycles, between two looks")
    parser.add_argument("--forces", type=int, default=5, help="looks between two that find forces")
    parser.add_argument(
        "--freeze",
        type=float,
        default=0.0,
        help="drop of the residual from which the limiter stays; explicit steps and multigrid",
    )
    parser.add_argument("--drop", type=float, default=1e-8)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--steps", type=int, default=10**9)
    parser.add_argument("--watch", action="store_true", help="look where the pressure changes most")
    parser.add_argument("--tell", type=float, default=10.0, help="seconds between two lines")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--start", help="states that --save has written, maybe before cells were divided")
    parser.add_argument("--after", metavar="FILE", help="begin with the steps when there is such a file")
    parser.add_argument("--save")
    parser.add_argument("--json")
    given = parser.parse_args()
    given.sizes = replace(SIZES[given.wing], **_pairs(given.size))
    found = run(given)
    print({key: found[key] for key in ("forces", "within_span", "y_plus", "errors") if key in found})
    if given.json:
        Path(given.json).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
