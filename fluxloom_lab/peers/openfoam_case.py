"""The lid-driven cavity as a case of OpenFOAM's ``icoFoam``: the text of its dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PRESSURE_SOLVERS", "CavityCase"]

Entries = Mapping[str, "str | float | int | Entries"]

PRESSURE_SOLVERS: dict[str, Entries] = {
    "PCG, DIC": {"solver": "PCG", "preconditioner": "DIC"},
    "GAMG": {"solver": "GAMG", "smoother": "GaussSeidel"},
}
"""Solvers for the pressure by name: conjugate gradients as the tutorials of OpenFOAM have them, and its multigrid."""


@dataclass(frozen=True)
class CavityCase:
    """The unit square under a lid of speed 1, one cell thick.

    PISO with two corrections, Euler's implicit steps and linear interpolation, as the tutorial of ``icoFoam``.

    Attributes
    ----------
    n
        Cells a side.
    reynolds
        1 over the viscosity.
    dt, steps
        Length and number of the steps.
    pressure
        A key of `PRESSURE_SOLVERS`.
    tolerance
        Of each pressure solve: the sum of the magnitudes of the residual over about twice that of the right-hand side.
    processes
        Among which the cells are divided.
    """

    n: int
    reynolds: float
    dt: float
    steps: int
    pressure: str
    tolerance: float
    processes: int = 1

    def files(self) -> dict[str, str]:
        """Return the text of each file by its path in the folder of the case."""
        found = {
            "system/controlDict": ("dictionary", self._control()),
            "system/fvSchemes": ("dictionary", _SCHEMES),
            "system/fvSolution": ("dictionary", self._solution()),
            "system/blockMeshDict": ("dictionary", self._mesh()),
            "system/decomposeParDict": ("dictionary", self._parts()),
            "constant/transportProperties": ("dictionary", {"nu": f"[0 2 -1 0 0 0 0] {1.0 / self.reynolds!r}"}),
            "0/U": ("volVectorField", _VELOCITY),
            "0/p": ("volScalarField", _PRESSURE),
        }
        return {path: _dictionary(path, kind, entries) for path, (kind, entries) in found.items()}

    def write(self, folder: Path) -> None:
        """Write the files."""
        for path, text in self.files().items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="ascii")

    def _control(self) -> Entries:
        return {
            "application": "icoFoam", "startFrom": "startTime", "startTime": 0, "stopAt": "endTime",
            "endTime": self.steps * self.dt, "deltaT": self.dt, "writeControl": "timeStep",
            "writeInterval": self.steps, "writeFormat": "ascii", "writePrecision": 12, "writeCompression": "off",
            "timeFormat": "general", "timePrecision": 12, "runTimeModifiable": "false",
        }  # fmt: skip

    def _solution(self) -> Entries:
        pressure = {**PRESSURE_SOLVERS[self.pressure], "tolerance": self.tolerance, "relTol": 0}
        velocity = {"solver": "smoothSolver", "smoother": "symGaussSeidel", "tolerance": 1e-5, "relTol": 0}
        piso = {"nCorrectors": 2, "nNonOrthogonalCorrectors": 0, "pRefCell": 0, "pRefValue": 0}
        return {"solvers": {"p": pressure, "pFinal": pressure, "U": velocity}, "PISO": piso}

    def _parts(self) -> Entries:
        """Return how the cells are divided, in slices along y."""
        return {
            "numberOfSubdomains": self.processes, "method": "simple",
            "simpleCoeffs": {"n": f"(1 {self.processes} 1)", "delta": 0.001},
        }  # fmt: skip

    def _mesh(self) -> Entries:
        """Return the mesh: cells numbered along x first, then along y."""
        corners = " ".join(f"({x} {y} {z})" for z in (0, 0.1) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1)))
        walls = "(0 4 7 3) (2 6 5 1) (1 5 4 0)"
        patches = (
            "lid { type wall; faces ((3 7 6 2)); } "
            f"walls {{ type wall; faces ({walls}); }} "
            "sides { type empty; faces ((0 3 2 1) (4 5 6 7)); }"
        )
        return {
            "scale": 1, "vertices": f"({corners})",
            "blocks": f"(hex (0 1 2 3 4 5 6 7) ({self.n} {self.n} 1) simpleGrading (1 1 1))",
            "edges": "()", "boundary": f"({patches})", "mergePatchPairs": "()",
        }  # fmt: skip


_SCHEMES: Entries = {
    "ddtSchemes": {"default": "Euler"},
    "gradSchemes": {"default": "Gauss linear"},
    "divSchemes": {"default": "none", "div(phi,U)": "Gauss linear"},
    "laplacianSchemes": {"default": "Gauss linear orthogonal"},
    "interpolationSchemes": {"default": "linear"},
    "snGradSchemes": {"default": "orthogonal"},
}
_VELOCITY: Entries = {
    "dimensions": "[0 1 -1 0 0 0 0]",
    "internalField": "uniform (0 0 0)",
    "boundaryField": {
        "lid": {"type": "fixedValue", "value": "uniform (1 0 0)"},
        "walls": {"type": "noSlip"},
        "sides": {"type": "empty"},
    },
}
_PRESSURE: Entries = {
    "dimensions": "[0 2 -2 0 0 0 0]",
    "internalField": "uniform 0",
    "boundaryField": {
        "lid": {"type": "zeroGradient"},
        "walls": {"type": "zeroGradient"},
        "sides": {"type": "empty"},
    },
}


def _dictionary(path: str, kind: str, entries: Entries) -> str:
    """Return the text of a file."""
    head: Entries = {"version": "2.0", "format": "ascii", "class": kind, "object": path.rpartition("/")[2]}
    return "\n".join([*_lines({"FoamFile": head}), "", *_lines(entries), ""])


def _lines(entries: Entries, indent: str = "") -> list[str]:
    """Return entries as OpenFOAM writes them: words and a semicolon, or braces around more entries."""
    found: list[str] = []
    for key, value in entries.items():
        if isinstance(value, Mapping):
            found += [f"{indent}{key}", f"{indent}{{", *_lines(value, indent + "    "), f"{indent}}}"]
        else:
            found.append(f"{indent}{key} {value!r};" if isinstance(value, float) else f"{indent}{key} {value};")
    return found
