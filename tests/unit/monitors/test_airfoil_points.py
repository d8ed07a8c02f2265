"""Probes and lines of the Airfoil benchmark: values of the cells that points are in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError
from tests.unit.monitors.point_cases import build, run, table

CASE = """
[case]
name = "airfoil"
solver = "airfoil"
[mesh]
i = 30
j = 20
[probes]
every = 2
points.above = [0.4, 0.3]
points.behind = [1.6, 0.0]
[lines.up]
start = [0.5, 0.0]
end = [0.5, 2.0]
count = 21
[run]
iterations = 5
threads = 1
"""


def test_values_of_cells(tmp_path: Path) -> None:
    """Those of the cell whose middle is there; over iterations; what is in the section is left out."""
    made = run(CASE, tmp_path, 5)
    mesh, fields = made.mesh(), made.fields()
    (cells,) = mesh.cells.values()
    middles = mesh.points[cells].mean(axis=1)
    probes = table(tmp_path / "probes.csv")
    assert probes["step"].tolist() == [2.0, 4.0, 5.0]
    for name, place in (("above", (0.4, 0.3)), ("behind", (1.6, 0.0))):
        near = np.argsort(np.linalg.norm(middles[:, :2] - place, axis=1))[:4]
        assert np.isclose(fields["density"][near], probes[f"{name}.density"][-1], rtol=1e-8).any()
    line = table(tmp_path / "line_up.csv")
    assert list(line) == ["x", "y", "distance", "density", "velocity_x", "velocity_y", "pressure", "mach"]
    assert line["y"][0] == pytest.approx(0.1)
    assert line["mach"][0] > 0.402
    other = build(CASE.replace("[0.4, 0.3]", str(middles[77, :2].tolist())))
    other.advance()
    other.advance()
    row = other.monitors[0].memory["rows"][-1]  # type: ignore[attr-defined]
    np.testing.assert_allclose(row[1], other.fields()["density"][77], rtol=1e-12)
    np.testing.assert_allclose(row[4:6], [other.fields()[name][77] for name in ("pressure", "mach")], rtol=1e-12)


def _on(comm: Comm, folder: Path) -> None:
    run(CASE, folder / f"{comm.size}", 5, comm=comm)


def test_two_ranks(tmp_path: Path) -> None:
    for ranks in (1, 2):
        (tmp_path / f"{ranks}").mkdir()
        run_threads(ranks, _on, tmp_path)
    for name in ("probes.csv", "line_up.csv"):
        one, two = (table(tmp_path / f"{ranks}" / name) for ranks in (1, 2))
        for column, values in one.items():
            np.testing.assert_allclose(two[column], values, rtol=1e-8, atol=1e-12, err_msg=column)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("period = 0.1", r"lines\.up: period: a flow on the way to a steady one has no time"),
        ("[spectra.a]\ncolumn = \"above.mach\"", r"spectra\.a: a flow on the way to a steady one has no time"),
    ],
)
def test_refused(more: str, message: str) -> None:
    with pytest.raises(CaseError, match=message):
        build(CASE.replace("count = 21\n", f"count = 21\n{more}\n"))
    with pytest.raises(CaseError, match=r"probes: probe 'above' at \(0\.4, 0\.01\) is not in the mesh"):
        build(CASE.replace("[0.4, 0.3]", "[0.4, 0.01]"))
