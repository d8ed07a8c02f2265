"""Files of cases in the dress of other programs: tables of numbers, marks, zones; and results that know their time."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.cli.main import main
from fluxloom.core.errors import CaseError
from fluxloom.mesh import box2d, read_data, read_fields, write
from fluxloom.run.results.image_data import write_image
from fluxloom.run.results.results import ResultFolder
from fluxloom.values.tables import read_raster, read_series
from fluxloom_lab.attack.files.texts import SU2, msh2

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "results.md"


def put(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


SERIES = {
    "plain": "0.0 0.25\n0.5 0.75\n1.0 1.5\n", "mark": "\ufeff0.0 0.25\n0.5 0.75\n1.0 1.5\n",
    "wide": "t\teta\n0.0\t0.25\n0.5\t0.75\n1.0\t1.5\n".encode("utf-16"), "csv": "t,eta\n0.0,0.25\n0.5,0.75\n1.0,1.5\n",
    "semicolons": "t;eta\n0.0;0.25\n0.5;0.75\n1.0;1.5\n", "blanks": "0.0, 0.25\n0.5, 0.75\n1.0, 1.5\n",
    "fortran": "0.0D0 2.5D-1\n5.0D-1 7.5d-01\n1.0D0 1.5D0\n", "more": "0.0 0.25 9\n0.5 0.75 9\n1.0 1.5 9\n",
    "remarks": "% from a program\n! of another\n0.0 0.25 # first\n0.5 0.75\n1.0 1.5\n",
}  # fmt: skip


@pytest.mark.parametrize("name", SERIES)
def test_series_in_any_dress(tmp_path, name):
    times, values = read_series(put(tmp_path / "a.txt", SERIES[name]))
    assert (times.tolist(), values.tolist()) == ([0.0, 0.5, 1.0], [0.25, 0.75, 1.5])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,0 0,25\n1,0 0,75\n", r"a\.txt:1: a decimal comma in '0,0'; write points"),
        ("t eta\n0,0\t0,25\n1,0\t0,75\n", r":2: a decimal comma"),
        ("0,0;0,25\n1,0;0,75\n", r":1: a decimal comma"),
        ("0 0,25\n1 0,75\n", r":1: a decimal comma in '0,25'"),
        ("0 1,250.5\n1 2,000.5\n", r":1: a decimal comma in '1,250.5'"),
        ("0,0,0,25\n1,0,0,75\n", r":1: '0,0,0,25': 2 numbers are expected, and commas between digits alone may be"),
        ("0,5,1\n1,5,0,75\n", r":1: '0,5,1': 2 numbers are expected, and commas"),
        ("O.0 0.25\n0.5 0.75\n", r":1: 2 numbers are expected, got 'O.0 0.25'; one heading may stand above"),
        ("0.0 zero\n0.5 0.75\n", r":1: 2 numbers are expected"),
        ("t eta\ns m\n0.5 0.75\n", r":2: 2 numbers are expected"),
    ],
)
def test_rows_that_are_no_numbers_are_told(tmp_path, text, message):
    with pytest.raises(CaseError, match=message):
        read_series(put(tmp_path / "a.txt", text))


def test_grids_with_marks_and_commas(tmp_path):
    grid = "ncols 2\nnrows 2\nxllcenter 0\nyllcenter 0\ncellsize 1\n1 2\n3 4\n"
    points = "x;y;z\n0;0;3\n1;0;4\n0;1;1\n1;1;2\n"
    for text in ("\ufeff" + grid, grid.replace("\n", "\r\n"), points, "\ufeff" + points.replace(";", " ")):
        raster = read_raster(put(tmp_path / "a.txt", text))
        assert raster(np.array([0.0, 1.0]), np.array([0.0, 1.0])).tolist() == [3.0, 2.0]
    for text in (grid.replace("1 2", "1,5 2"), points.replace("0;0;3", "0,0;0,0;3,5")):
        with pytest.raises(CaseError, match=r"a\.txt"):
            read_raster(put(tmp_path / "a.txt", text))


CASE = """[case]
name = "pond"
solver = "tsunami"
[mesh]
file = "two.su2"
zone = 2
[bathymetry]
expression = "-1"
[run]
time = 0.1
iterations = 2
threads = 1
[output]
picture = false
snapshots = 2
"""


def two_zones(folder: Path) -> Path:
    """Write a file of two zones: a unit square, and the same twice as high with other markers."""
    second = SU2.replace("1 1\n", "1 2\n").replace("0 1\n", "0 2\n", 1).replace("TAG= wall", "TAG= shore")
    second = second.replace("0 1\nNMARK", "0 2\nNMARK")
    return put(folder / "two.su2", f"NZONE= 2\nIZONE= 1\n{SU2}IZONE= 2\n{second}")


def test_zones_by_key_and_option(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    two_zones(tmp_path)
    for text in (CASE, "\ufeff" + CASE):
        case, application = load_case(put(tmp_path / "pond.toml", text))
        assert application.estimate(case).cells == 1
    with pytest.raises(CaseError, match="zone belongs to a mesh from a file: give file, or leave zone out"):
        load_case(put(tmp_path / "bad.toml", CASE.replace('file = "two.su2"\n', "")))
    assert main(["mesh", "info", "two.su2", "--zone", "2"]) == 0
    assert "shore (3), in (1)" in capsys.readouterr().out
    assert main(["mesh", "convert", "two.su2", "one.msh", "--zone", "2"]) == 0
    assert list(read_data("one.msh").patches) == ["shore", "in"]
    assert main(["mesh", "check", "two.su2"]) == 2
    assert "the file has 2 zones; choose one: --zone N, [mesh] zone = N" in capsys.readouterr().err


def test_info_and_convert_say_what_a_run_refuses(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "bad.msh", msh2(sides="1 1 2 1 1 1 2\n"))
    assert main(["mesh", "info", "bad.msh"]) == 0
    assert "missing patch: 3 boundary faces belong to no patch" in capsys.readouterr().out
    assert main(["mesh", "convert", "bad.msh", "bad.vtu"]) == 0
    assert "a run would refuse this mesh" in capsys.readouterr().err
    assert main(["mesh", "check", "bad.msh"]) == 2
    put(tmp_path / "good.msh", msh2())
    assert main(["mesh", "info", "good.msh"]) == 0
    assert re.search(r"check +sound", capsys.readouterr().out)


# ---------- time in every series
def test_series_go_on_with_a_run(tmp_path):
    """A resumed run keeps the entries of files that are its own; a new one begins its list anew."""
    field = {"p": np.zeros((2, 3))}

    def take(folder: ResultFolder, time: float, number: int) -> None:
        def put_image(path: Path) -> None:
            write_image(path, field, origin=(0.0, 0.0), spacing=1.0, time=time)

        folder.write_at(time, f"fields_{number:03d}.vti", put_image)

    def listed() -> list[tuple[str, float]]:
        items = ElementTree.parse(tmp_path / "fields.pvd").getroot().iter("DataSet")
        return [(item.get("file", ""), float(item.get("timestep", ""))) for item in items]

    first = ResultFolder(tmp_path)
    take(first, 0.5, 1)
    take(first, 1.0, 2)
    assert listed() == [("fields_001.vti", 0.5), ("fields_002.vti", 1.0)]
    resumed = ResultFolder(tmp_path)
    resumed.written = list(first.written)
    take(resumed, 1.5, 3)
    assert listed()[1:] == [("fields_002.vti", 1.0), ("fields_003.vti", 1.5)]
    anew = ResultFolder(tmp_path)
    take(anew, 0.25, 1)
    assert listed() == [("fields_001.vti", 0.25)]
    assert set(anew.written) == {"fields_001.vti", "fields.pvd"}
    root = ElementTree.fromstring((tmp_path / "fields_001.vti").read_bytes().split(b"<AppendedData")[0] + b"</VTKFile>")
    (value,) = root.findall("ImageData/FieldData/DataArray")
    assert (value.get("Name"), float(value.text or "")) == ("TimeValue", 0.25)


@pytest.mark.parametrize("suffix", [".vtu", ".vtkhdf"])
def test_files_know_their_time(tmp_path, suffix):
    path, mesh = tmp_path / f"a{suffix}", box2d(2, 2)
    if suffix == ".vtkhdf":
        h5py = pytest.importorskip("h5py")
    write(path, mesh, cell_data={"u": np.arange(4.0)}, time=12.5)
    assert read_fields(path).cell_data["u"].tolist() == [0.0, 1.0, 2.0, 3.0]
    if suffix == ".vtu":
        assert b'Name="TimeValue" NumberOfTuples="1" format="ascii">12.5<' in path.read_bytes()
        return
    with h5py.File(path) as file:
        steps = file["VTKHDF/Steps"]
        assert (int(steps.attrs["NSteps"]), steps["Values"][()].tolist()) == (1, [12.5])
        assert steps["CellDataOffsets/u"][()].tolist() == [0]
