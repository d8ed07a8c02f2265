"""Slices through flows in three dimensions: the raster, what is outside, files, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError
from fluxloom.monitors.slices import Slice
from fluxloom.run.results.results import ResultFolder
from tests.unit.monitors.point_cases import build, run

BOX = """
[case]
name = "box"
solver = "compressible"
[mesh]
x = [-1.0, 1.0]
y = [0.0, 1.5]
nx = 4
ny = 3
nz = 3
kind = "tetra"
[flow]
mach = 0.3
[initial]
density = "1 + 0.1 * x + 0.2 * y - 0.1 * z"
velocity_x = "0.1 - 0.05 * y"
velocity_y = "0.05 * z"
velocity_z = "0.05 * x"
pressure = "1 + 0.05 * x - 0.1 * y"
[boundary]
xmin = { type = "slip" }
xmax = { type = "slip" }
ymin = { type = "slip" }
ymax = { type = "slip" }
zmin = { type = "slip" }
zmax = { type = "slip" }
[time]
end = 1.0
[slices.across]
axis = "z"
at = 0.4
every = 2
size = 8
[slices.side]
axis = "x"
at = 0.1
size = 5
[run]
iterations = 3
threads = 1
"""


def slice_of(made: object, name: str) -> Slice:
    return next(one for one in made.monitors if isinstance(one, Slice) and one.called == name)  # type: ignore[attr-defined]


def test_a_linear_field(tmp_path: Path) -> None:
    """Exact in the middle of every square, rows along y and columns along x; across x rows along z."""
    made = build(BOX)
    made.begin(ResultFolder(tmp_path))
    across, side = slice_of(made, "across"), slice_of(made, "side")
    across.stepped()
    x, y = -1.0 + 0.25 * (np.arange(8) + 0.5), 0.25 * (np.arange(6) + 0.5)
    assert across.extent == pytest.approx((-1.0, 1.0, 0.0, 1.5))
    np.testing.assert_allclose(across.values["rho"], 0.96 + 0.1 * x + 0.2 * y[:, None], rtol=1e-9)
    made.advance()
    side.finish()
    assert side.values["p"].shape == (4, 5)
    data = (tmp_path / "slice_side.vti").read_bytes()
    assert b'WholeExtent="0 1 0 5 0 4"' in data
    assert b'Origin="-0.04' in data
    assert b'Name="nu' not in data


def test_files_and_pictures(tmp_path: Path) -> None:
    """One for every second step, and the last; drawn are speed and the others."""
    pytest.importorskip("matplotlib")
    made = run(BOX, tmp_path, 3)
    for monitor in made.monitors:
        monitor.draw("box")
    names = {path.name for path in tmp_path.iterdir() if path.name.startswith("slice_")}
    assert {"slice_across.vti", "slice_across_000002.vti", "slice_side.vti", "slice_side_speed.png"} <= names
    assert "slice_across_000003.vti" not in names
    assert "slice_side_u.png" not in names
    assert dict(made.summary())["slice across"] == "8 by 6 squares of 0.25, 48 of them in the mesh"


def test_outside_is_nan(tmp_path: Path) -> None:
    """Beside a cylinder across a channel there are values, in it there are none."""
    text = BOX.replace('kind = "tetra"', 'shape = "cylinder"\nn = 4\nz = [0.0, 0.5]\nnz = 2')
    text = text.replace("x = [-1.0, 1.0]\ny = [0.0, 1.5]\nnx = 4\nny = 3\nnz = 3\n", "")
    text = text.replace('zmin = {', 'cylinder = { type = "slip" }\nzmin = {').replace("size = 8", "size = 110")
    made = build(text.replace("at = 0.4", "at = 0.2").replace("[slices.side]\naxis = \"x\"\nat = 0.1\nsize = 5\n", ""))
    made.begin(ResultFolder(tmp_path))
    across = slice_of(made, "across")
    across.stepped()
    rho = across.values["rho"]
    x = across.extent[0] + (across.extent[1] - across.extent[0]) * (np.arange(rho.shape[1]) + 0.5) / rho.shape[1]
    y = across.extent[2] + (across.extent[3] - across.extent[2]) * (np.arange(rho.shape[0]) + 0.5) / rho.shape[0]
    far = np.hypot(x - 0.2, y[:, None] - 0.2)
    assert np.isnan(rho[far < 0.03]).all()
    assert np.isfinite(rho[far > 0.06]).all()


def _on(comm: Comm, folder: Path) -> np.ndarray:
    return slice_of(run(BOX, folder, 3, comm=comm), "across").values["rho"]


def test_two_ranks(tmp_path: Path) -> None:
    one, two = (run_threads(ranks, _on, tmp_path)[0] for ranks in (1, 2))
    np.testing.assert_allclose(two, one, rtol=1e-9)


def test_refused() -> None:
    plane = BOX.replace("nz = 3\n", "").replace('kind = "tetra"\n', "").replace(' - 0.1 * z"', '"')
    plane = plane.replace('"0.05 * z"', '"0"').replace('velocity_z = "0.05 * x"\n', "")
    plane = plane.replace('zmin = { type = "slip" }\nzmax = { type = "slip" }\n', "")
    with pytest.raises(CaseError, match=r"slices\.across: slices are of flows in three dimensions; of a plane"):
        build(plane)
    with pytest.raises(CaseError, match=r"slices\.side: none of 20 points is in the mesh"):
        build(BOX.replace("at = 0.1", "at = 1.1"))
    with pytest.raises(CaseError, match=r"slices\.side\.axis"):
        build(BOX.replace('axis = "x"', 'axis = "r"'))
