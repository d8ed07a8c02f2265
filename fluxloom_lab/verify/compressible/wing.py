"""The ONERA M6 wing: lift and drag, and where its shocks are, against the measurement and other codes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fluxloom.core.errors import CaseError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras
from fluxloom.mesh import read_data
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.solvers.compressible.implicit import Implicit, SteadySteps
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom_lab.problems.wing import wing_mesh
from fluxloom_lab.verify.base import Check, DataOptions, Tell
from fluxloom_lab.verify.compressible.wing_case import AREA, CHORD, PLANFORM, Wing
from fluxloom_lab.verify.compressible.wing_data import FOLDER, STATIONS, measured, shock
from fluxloom_lab.verify.compressible.wing_meshes import SIZES, wing_shape

__all__ = ["TURBULENT_STEPS", "WingVerification", "projected_area"]

_REPORT = "AGARD AR-138, 1979, test 2308"
_SU2 = "SU2 7, JST on tetrahedra, regression of the tutorial, with the area seen from above"
_CODES = "CFL3D, FUN3D, USM3D with Spalart-Allmaras, finest meshes (NASA, Turbulence Modeling Resource)"

_WHERE = 0.05
"""How far a shock may be from the measured one, in chords: about the distance of two tappings."""
TURBULENT_STEPS = Implicit(krylov=0, sweeps=6, cfl=30.0)
"""Of turbulent flow on thin cells: sweeps alone, whose CFL number falls to about 5 by itself."""
_MOST, _LOOK, _LOOKS, _STANDS = 40, 200, 6, 1e-3
"""How often one looks at forces at most, after how many steps, and how many looks show them differ by how much."""
_FALLEN, _ENOUGH = 1e-4, 0.1
"""Parts of the first residual at which steps end, and of the largest one above which the flow is not steady."""


class WingVerification:
    """The wing without friction on the coarse mesh of the data; ``--full``: on finer ones, and turbulent."""

    title = "the ONERA M6 wing: lift, drag, places of shocks (needs --data)"
    options = DataOptions

    def run(self, options: DataOptions, tell: Tell) -> Iterator[Check]:
        """Yield the checks as they are done.

        Raises
        ------
        CaseError
            If there is no folder of data.
        """
        folder = None if options.data is None else options.data / FOLDER
        if folder is None or not folder.is_dir():
            raise CaseError(f"onera-m6: public reference data are wanted: give --data, a folder that has {FOLDER}")
        yield from _geometry(folder)
        context = options.context()
        yield from _inviscid(context, folder, "coarse.su2", tell)
        if options.full:
            for size in ("medium.su2.gz", "fine.su2.gz"):
                yield from _inviscid(context, folder, size, tell)
            yield from _turbulent(context, folder, tell)


def projected_area(mesh: MeshData, patch: str = "wing") -> float:
    """Return the area of a wing as seen from above, a half of the sum of ``|n_z| A``."""
    corners = mesh.points[mesh.patch(patch).blocks["quad"]]
    normals = 0.5 * np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
    return float(0.5 * np.abs(normals[:, 2]).sum())


def _geometry(folder: Path) -> Iterator[Check]:
    yield Check("planform: area", PLANFORM.area, AREA, 1e-3, _REPORT)
    yield Check("planform: mean aerodynamic chord", PLANFORM.mean_chord, CHORD, 1e-3, _REPORT)
    mesh = read_data(folder / "om6_inviscid_coarse.su2")
    cap = "the planform and the cap of the tip, half an ellipse of 0.0222 m"
    wanted = PLANFORM.area + 0.25 * np.pi * 0.022235 * PLANFORM.root * PLANFORM.taper
    yield Check("mesh: area seen from above", projected_area(mesh), wanted, 0.01, cap)


def _inviscid(context: Context, folder: Path, size: str, tell: Tell) -> Iterator[Check]:
    """Check the flow without friction; its shocks are some per cent of the chord behind the measured ones."""
    mesh = read_data(folder / f"om6_inviscid_{size}")
    wing = Wing(context, mesh, CompressibleScheme())
    _steady(wing, 600, tell)
    what = f"without friction, {mesh.n_cells:,} hexahedra"
    found = wing.coefficients()
    yield Check(f"{what}: lift, area seen from above", found["CL"] * AREA / projected_area(mesh), 0.2817, 0.06, _SU2)
    yield Check(f"{what}: drag", found["CD"], 0.0118, 0.35 if mesh.n_cells < 100_000 else 0.15, _SU2)
    yield from _shocks(wing, folder, what)


def _turbulent(context: Context, folder: Path, tell: Tell) -> Iterator[Check]:
    """Check turbulent flow on a mesh of our own, some thousand sweeps: half a minute on a large GPU, hours without."""
    mesh = wing_mesh(wing_shape(), SIZES["medium"])
    wing = Wing(context, mesh, CompressibleScheme(turbulence=SpalartAllmaras()))
    wing.first_order(100)
    _standing(wing, tell)
    what = f"turbulent, {mesh.n_cells:,} hexahedra"
    found = wing.coefficients()
    yield Check(f"{what}: lift", found["CL"], 0.270, 0.03, _CODES)
    yield Check(f"{what}: drag", found["CD"], 0.0170, 0.1, _CODES)
    yield Check(f"{what}: y+, mean", wing.along_span()["y_plus"][0], 1.0, 0.5, "wanted by the model")
    yield from _shocks(wing, folder, what)


def _standing(wing: Wing, tell: Tell) -> None:
    """Make sweeps until lift and drag stand.

    Raises
    ------
    SolverError
        If they do not.
    """
    steps = SteadySteps(wing.flow, TURBULENT_STEPS)
    forces: list[tuple[float, float]] = []
    for _ in range(_MOST):
        for _ in range(_LOOK):
            steps.step()
        found = wing.coefficients()
        forces.append((found["CL"], found["CD"]))
        last = np.array(forces[-_LOOKS:])
        if len(last) == _LOOKS and (np.ptp(last, axis=0) < _STANDS * last[-1]).all():
            break
    else:
        raise SolverError(f"the wing: lift and drag do not stand after {wing.flow.steps} steps: {forces[-3:]}")
    lift, drag = forces[-1]
    tell(f"{wing.mesh.n_cells:,} cells: {wing.flow.steps} steps, lift {lift:.4f}, drag {drag:.5f}")


def _steady(wing: Wing, most: int, tell: Tell) -> None:
    """Make steps until the residual has fallen; forces stand in their fourth digit long before."""
    norms = SteadySteps(wing.flow).solve(_FALLEN, most)
    part = norms[-1] / max(norms)
    tell(f"{wing.mesh.n_cells:,} cells: {len(norms) - 1} steps, residual {part:.1e} of the largest one")
    if part > _ENOUGH:
        raise SolverError(f"the wing: the residual is {part:.1e} of the largest one after {most} steps")


def _shocks(wing: Wing, folder: Path, what: str) -> Iterator[Check]:
    for eta, cut, test in zip(STATIONS[:-1], wing.sections(), measured(folder), strict=False):
        place, low, high = test.shock()
        found = shock(cut.x[cut.upper], cut.cp[cut.upper])[0]
        source = f"{_REPORT}, tappings at {low:.2f} and {high:.2f}"
        yield Check(f"{what}: shock at y/b = {eta:.2f}, from the measured one", found - place, 0.0, _WHERE, source)
