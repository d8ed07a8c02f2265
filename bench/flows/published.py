"""Pictures of published flows: pressure on NACA 0012 with turbulence, and friction along a turbulent plate.

    python bench/flows/published.py --data FOLDER --pictures FOLDER [--device cuda]
    python bench/flows/published.py --data FOLDER --pictures FOLDER --states FOLDER

With ``--states`` the states that an earlier run kept there are drawn, and those that are missing are computed and kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import fluxloom as fl
from fluxloom_lab.problems.published_cases import PublishedCase, Settled, refined, turbulent_airfoil, turbulent_plate

Array = npt.NDArray[np.float64]

_STEPS = 600
_MEASURED: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("n0012cp_cfl3d_sa.dat", "alpha=10", "CFL3D, 897 x 257", {"ls": ":", "color": "k"}),
    ("CP_Gregory_expdata.dat", "alpha=10", "Gregory, O'Reilly (Re 2.9e6)", {"ls": "", "marker": "o", "mfc": "none"}),
    ("CP_Ladson.dat", "Re=6 million, alpha=10", "Ladson (M 0.3, Re 6e6)", {"ls": "", "marker": "x"}),
)
"""Files of pressures on NACA 0012, which zone of them, what they are, and how they are drawn."""


def settled(context: fl.Context, case: PublishedCase, rows: int, coarse: Settled | None, file: Path | None) -> Settled:
    """Return the steady state: that of a file, or from the one on a coarser mesh, which is kept in the file."""
    if file is not None and file.exists():
        return case.found(case.begin(context, np.load(file)["w"]), 0.0, 0)
    states = None if coarse is None else refined(coarse.flow.states(), rows)
    found = case.settle(context, 1e-9 if coarse is None else 1e-6, _STEPS, states)
    print(f"{case.mesh.source.path}: {found.steps} steps to {found.drop:.1e}", flush=True)
    if file is not None:
        np.savez_compressed(file, w=found.flow.states())
    return found


def family(context: fl.Context, cases: dict[str, PublishedCase], rows: int, states: Path | None) -> dict[str, Settled]:
    """Return steady states on meshes of which each has twice the rows of the one before."""
    found: dict[str, Settled] = {}
    for name, case in cases.items():
        before = next(reversed(found.values()), None)
        file = None if states is None else states / f"{name}.npz"
        found[name] = settled(context, case, rows << max(0, len(found) - 1), before, file)
    return found


def columns(file: Path, zone: str = "") -> Array:
    """Return the two columns of a table of numbers, of one zone where it has several."""
    rows, inside = [], not zone
    for line in file.read_text().splitlines():
        if line.lower().startswith("zone"):
            inside = not zone or zone in line
        elif inside:
            try:
                rows.append([float(word) for word in line.replace(",", " ").split()[:2]])
            except ValueError:
                continue
    return np.array([row for row in rows if len(row) == 2])


def draw_airfoil(found: Settled, data: Path, picture: Path) -> None:
    """Draw the pressure at 10 degrees over that of CFL3D and the measurements of Gregory and O'Reilly, and Ladson."""
    axes, save = figure()
    x, y = found.wall.places.T
    for side, label in ((y >= 0.0, "224 x 64 quads"), (y < 0.0, None)):
        axes.plot(x[side], found.cp[side], color="tab:blue", label=label)
    for name, zone, label, style in _MEASURED:
        table = columns(data / "naca0012" / "tmr" / name, zone)
        if table.size:
            axes.plot(*table.T, label=label, ms=4, lw=1.2, **style)
    axes.set(xlabel="x / c", ylabel="pressure coefficient", title="NACA 0012, M 0.15, Re 6e6, 10 degrees")
    axes.invert_yaxis()
    axes.legend()
    save(picture)


def draw_plate(found: dict[str, Settled], data: Path, picture: Path) -> None:
    """Draw the friction on all meshes over that of CFL3D."""
    axes, save = figure()
    for name, one in found.items():
        axes.plot(one.wall.places[:, 0], 1e3 * one.cf, label=name)
    table = columns(data / "flat_plate" / "ref" / "cfl3d_cf_545x385_sa.csv")
    axes.plot(table[:, 0], 1e3 * table[:, 1], "k:", label="CFL3D, 545 x 385")
    axes.set(xlabel="x", ylabel="1000 x friction coefficient", title="Turbulent plate, M 0.2, Re 5e6", ylim=(2.0, 6.0))
    axes.legend()
    save(picture)


def figure() -> tuple[Any, Callable[[Path], None]]:
    """Return axes, and what writes them to a file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    whole = Figure(figsize=(6.4, 4.4), layout="constrained")
    FigureCanvasAgg(whole)
    return whole.subplots(), lambda file: whole.savefig(file, dpi=110)


def main() -> None:
    """Run and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pictures", type=Path, required=True)
    parser.add_argument("--states", type=Path)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    context = fl.Context(given.device)
    sizes = ("035x025", "069x049", "137x097")
    plates = {f"{size} nodes": turbulent_plate(given.data, size) for size in sizes}
    draw_plate(family(context, plates, 24, given.states), given.data, given.pictures / "turbulent_plate.png")
    airfoils = {size: turbulent_airfoil(given.data, size, 10.0) for size in ("113-33", "225-65")}
    last = list(family(context, airfoils, 32, given.states).values())[-1]
    draw_airfoil(last, given.data, given.pictures / "naca0012_turbulent.png")


if __name__ == "__main__":
    main()
