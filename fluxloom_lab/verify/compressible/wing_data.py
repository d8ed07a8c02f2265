"""Pressure on the ONERA M6 wing as it was measured, and as another code has it: files of a folder of reference data.

Run 308 of V. Schmitt, F. Charpin: *Pressure distributions on the ONERA-M6-wing at transonic Mach numbers*, AGARD
AR-138, 1979; and CFL3D with the model of Spalart and Allmaras, from NASA's Turbulence Modeling Resource.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError
from fluxloom_lab.studies.wing_sections import critical_pressure, shock_places

__all__ = ["FOLDER", "MACH", "STATIONS", "Station", "computed", "measured", "shock"]

Array = npt.NDArray[np.float64]

FOLDER = "onera_m6"
"""Where the files are looked for in a folder of reference data."""
MEASURED, COMPUTED = "case_2308.dat", "CFL3D_OM6_A3p06_CP.dat"
MACH = 0.8395
STATIONS = (0.20, 0.44, 0.65, 0.80, 0.90, 0.96, 0.99)
"""Places along the half span, over its length."""


@dataclass(frozen=True, eq=False)
class Station:
    """Pressure coefficients at a station: ``x`` over the chord, ``cp``, and whether on the upper side, ``(n,)``."""

    x: Array
    cp: Array
    upper: npt.NDArray[np.bool_]

    def shock(self) -> tuple[float, float, float]:
        """Return where the pressure above rises through that of sonic speed the last time, and the places beside."""
        return shock(self.x[self.upper], self.cp[self.upper])


def shock(x: Array, cp: Array) -> tuple[float, float, float]:
    """Return where the pressure of a side rises through that of sonic speed for the last time, and the places beside.

    NaN where it does not.
    """
    order = np.argsort(x, kind="stable")
    x, cp = x[order], cp[order]
    found = shock_places(x, cp, critical_pressure(MACH))
    if not found.size:
        return np.nan, np.nan, np.nan
    k = int(np.searchsorted(x, found[-1]))
    return float(found[-1]), float(x[k - 1]), float(x[k])


def measured(folder: Path) -> list[Station]:
    """Return what was measured at the stations; files list the lower side first, from the trailing edge on.

    Raises
    ------
    CaseError
        If the file is not there, or has other stations.
    """
    found = []
    for table in _zones(folder / MEASURED).values():
        x = table["X/L"]
        found.append(Station(x, table["CP"], np.arange(x.size) >= int(x.argmin())))
    return _complete(folder / MEASURED, found)


def computed(folder: Path) -> list[Station]:
    """Return what CFL3D has on its finest mesh; the file lists the upper side first, from the nose on.

    Raises
    ------
    CaseError
        If the file is not there, or has other stations.
    """
    found = []
    for title, table in _zones(folder / COMPUTED).items():
        if " L1 " in title:
            x = table["X/C"]
            found.append(Station(x, table["CP"], np.arange(x.size) <= int(x.argmax())))
    return _complete(folder / COMPUTED, found)


def _complete(path: Path, found: list[Station]) -> list[Station]:
    if len(found) != len(STATIONS):
        raise CaseError(f"{path}: {len(STATIONS)} stations are wanted, not {len(found)}")
    return found


def _zones(path: Path) -> dict[str, dict[str, Array]]:
    """Return the zones of a file of Tecplot: title to the columns by their names."""
    if not path.is_file():
        raise CaseError(f"{path}: there is no such file; --data names the folder that has {FOLDER}")
    zones: dict[str, list[list[float]]] = {}
    names: list[str] = []
    title = ""
    for line in path.read_text().splitlines():
        words = line.split()
        if line.strip().upper().startswith("VARIABLES"):
            names = [name.upper() for name in re.findall(r'"([^"]+)"', line)]
        elif line.strip().upper().startswith("ZONE"):
            title = re.findall(r'"([^"]+)"', line)[0]
            zones[title] = []
        elif title and words and words[0][0] in "-.0123456789":
            zones[title].append([float(word) for word in words])
    tables = {title: np.array(rows) for title, rows in zones.items()}
    return {title: {name: rows[:, k] for k, name in enumerate(names)} for title, rows in tables.items()}
