"""What `onera_m6.py` has written beside measurements and other codes: a picture, places of shocks, forces.

    python bench/flows/onera_m6_compare.py FILE... --data FOLDER --picture docs/images/onera_m6.png

The folder has the pressures of run 308 (AGARD AR-138) and those of CFL3D with the same model of turbulence, as NASA's
Turbulence Modeling Resource offers them; see `fluxloom_lab.verify.compressible.wing_data`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fluxloom_lab.studies.section_pictures import Panel, Pressures, draw_sections
from fluxloom_lab.studies.wing_sections import critical_pressure
from fluxloom_lab.verify.compressible.wing_data import MACH, STATIONS, computed, measured, shock

MODELS = {"euler": "no friction", "sa": "Spalart-Allmaras"}
PROJECTED = 0.76296
"""Area of the meshes' wings seen from above, with the cap of the tip, m^2."""


def label(found: dict[str, Any]) -> str:
    """Return a name for a run."""
    cells = found["cells"]
    size = f"{cells / 1e6:.1f} M" if cells > 1e6 else f"{cells // 1000} k"
    return f"{MODELS[found['model']]}, {size} cells"


def station(found: dict[str, Any], eta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return places, pressure coefficients, and whether above, of a run at a station."""
    cut = found["stations"][f"{eta:g}"]
    return np.array(cut["x"]), np.array(cut["cp"]), np.array(cut["upper"], dtype=bool)


def draw(runs: Sequence[dict[str, Any]], folder: Path, picture: Path) -> None:
    """Draw the pressures of all runs over the measured ones."""
    panels = []
    for eta, test, other in zip(STATIONS, measured(folder), computed(folder), strict=True):
        curves = [Pressures("CFL3D, Spalart-Allmaras", other.x, other.cp)]
        for found in runs:
            x, cp, upper = station(found, eta)
            way = np.concatenate([np.flatnonzero(~upper)[::-1], np.flatnonzero(upper)])
            curves.append(Pressures(label(found), x[way], cp[way]))
        panels.append(
            Panel(f"y / b = {eta:.2f}", [*curves, Pressures("measured, run 308", test.x, test.cp, marks=True)])
        )
    title = "ONERA M6, M = 0.8395, 3.06 degrees: pressure over the chord"
    draw_sections(picture, panels, title, critical_pressure(MACH))


def shocks(runs: Sequence[dict[str, Any]], folder: Path) -> list[list[str]]:
    """Return the rows of a table: the shock at each station, measured between two tappings, and of each run."""
    rows = [["y/b", "between tappings", "measured", "CFL3D SA", *(label(found) for found in runs)]]
    for eta, test, other in zip(STATIONS, measured(folder), computed(folder), strict=True):
        place, low, high = test.shock()
        row = [f"{eta:.2f}", f"{low:.3f} to {high:.3f}", f"{place:.3f}", f"{other.shock()[0]:.3f}"]
        for found in runs:
            x, cp, upper = station(found, eta)
            row.append(f"{shock(x[upper], cp[upper])[0]:.3f}")
        rows.append(row)
    return rows


def forces(runs: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Return the rows of a table: forces with the published area, those within the published span, and other areas."""
    heads = (
        "run, steps, drop, CL, CD, CD of friction, CL within the span, CD within the span, CL with the projected area"
    )
    rows = [[*heads.split(", "), "y+: mean, 99 %, most"]]
    for found in runs:
        force, span, last = found["forces"], found["within_span"], found["rows"][-1]
        rows.append([
            f"{label(found)}, {found['integrator']}", f"{last['step']}",
            f"{last['residual'] / found['first_residual']:.1e}",
            f"{force['CL']:.4f}", f"{force['CD']:.5f}", f"{force['CDv']:.5f}", f"{span['CL']:.4f}", f"{span['CD']:.5f}",
            f"{force['CL'] * found['area'] / PROJECTED:.4f}", ", ".join(f"{v:.2f}" for v in found["y_plus"]),
        ])  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    runs = [json.loads(file.read_text()) for file in given.files]
    for table in (forces(runs), shocks(runs, given.data)):
        for row in table:
            print(" | ".join(row))
        print()
    if given.picture:
        draw(runs, given.data, given.picture)


if __name__ == "__main__":
    main()
