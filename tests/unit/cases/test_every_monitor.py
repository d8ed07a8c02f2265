"""Every solver with every monitor that has a meaning there, from its case file; the others are refused by name.

The table of `docs/guide/overview.md` says which: this is its test.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

from fluxloom.run.results.image_data import read_image
from tests.faults.cases import CASES

Call = Callable[..., SimpleNamespace]

STEPS = 12

MONITORS = """
[probes]
points.a = {a}
points.b = {b}
[lines.cut]
start = {a}
end = {b}
count = 5
every = 3
[snapshots]
every = 5
fields = ["half = {value} / 2"]
[statistics]
every = 2
profile = "x"
bins = 4
[stop]
column = "{column}"
tolerance = 1e9
window = 6
"""
SPECTRA = """
[spectra.one]
column = "a.{value}"
start = 0.0
length = 1.0
speed = 1.0
[spectra.two]
column = "{column}"
"""
FILM = """
[movie]
every = 4
field = "{film}"
range = 1.0
"""
FORCES = """
[forces.{wall}]
speed = 1.0
area = 1.0
[patch_flow.{wall}]
"""
WALLS = """
[walls.{wall}]
speed = 1.0
"""
HEAT = "length = 1.0\ndifference = 2.0\n"
SCALAR = """
scalar = "T"
[scalar.T]
diffusivity = 0.02
initial = "x"
[scalar.T.boundary]
xmin = { type = "value", value = 1 }
xmax = { type = "adiabatic" }
ymin = { type = "flux", value = "cos(t)" }
ymax = { type = "flux", value = 0.4 }
"""


@dataclass(frozen=True)
class Tried:
    """A solver with what its monitors look at.

    Attributes
    ----------
    value, column
        A field at points, and a column of the history.
    film
        The field of a film; empty: there is none.
    a, b
        Points.
    wall
        A patch with forces; empty: there are no surfaces.
    faces
        Columns of a table of the wall; none: there is no table.
    passes
        Columns of what flows through the wall.
    mean
        A field of which there are averages.
    steady
        Whether the flow has no time.
    changes, more
        Of its small case, and what stands behind the tables of the monitors.
    scalar
        Whether it is one of a scalar alone: there are no forces.
    """

    value: str = "u"
    column: str = "kinetic_energy"
    film: str = "speed"
    a: tuple[float, float] = (0.3, 0.4)
    b: tuple[float, float] = (0.7, 0.6)
    wall: str = "ymax"
    faces: tuple[str, ...] = ("p", "tau", "y_plus", "cp", "cf")
    passes: tuple[str, ...] = ("flow", "p", "total_pressure")
    mean: str = "u"
    steady: bool = False
    changes: Mapping[str, str] = field(default_factory=dict[str, str])
    more: str = ""
    scalar: bool = False

    def tables(self) -> str:
        """Return the tables of all monitors that have a meaning."""
        words = {name: getattr(self, name) for name in ("value", "column", "film", "wall")}
        words |= {"a": list(self.a), "b": list(self.b)}
        found = MONITORS + ("" if self.steady else SPECTRA) + (FILM if self.film else "")
        found += ("[patch_flow.{wall}]\n" if self.scalar else FORCES if self.wall else "")
        found += ("[walls.{wall}]\n" if self.scalar else WALLS if self.faces else "")
        return found.format(**words) + self.more


HISTORY = {"threads = 1": "threads = 1\n[history]\nevery = 1"}
TRIED: Mapping[str, Tried] = MappingProxyType({
    "airfoil": Tried(
        "mach", "residual", "vorticity", (1.5, 0.4), (1.5, 0.8), "wall", ("p", "cp"), ("flow", "p"), "density", True,
        HISTORY,
    ),
    "compressible": Tried(
        column="residual", faces=("p", "tau", "y_plus", "cp", "cf", "T", "heat_flux", "nusselt"),
        passes=("flow", "p", "total_pressure", "T", "heat"), changes={
            '[boundary.ymax]\ntype = "slip"': '[boundary.ymax]\ntype = "wall"\nheat_flux = "x * t"',
            "[flow]": '[gas]\nviscosity = { type = "constant", mu = 0.01 }\n[flow]\npressure = 1.0',
        }, more=HEAT,
    ),
    "incompressible": Tried(
        faces=("p", "tau", "y_plus", "cp", "cf", "T", "T_flux", "nusselt"),
        passes=("flow", "p", "total_pressure", "T", "T_flux"), more=HEAT + SCALAR,
    ),
    "edge_flow": Tried(),
    "edge_transport": Tried("scalar", "amount", "scalar", wall="", faces=(), passes=(), mean="scalar"),
    "diffusion": Tried(
        "scalar", "amount", "scalar", wall="ymin", faces=("scalar", "scalar_flux", "nusselt"),
        passes=("scalar", "scalar_flux"), mean="scalar", scalar=True, more=HEAT + 'scalar = "scalar"\n',
    ),
    "staggered": Tried(),
    "lattice": Tried(faces=("p", "tau", "y_plus", "cp", "cf"), passes=("flow",), changes={
        "[history]": '[boundary.ymax]\ntype = "wall"\n[boundary.ymin]\ntype = "wall"\n[history]',
    }),
    "tsunami": Tried(
        "depth", "speed", "speed", (300.0, 400.0), (700.0, 600.0), "", (), ("flow", "depth", "elevation"),
        "depth", changes=HISTORY, more="[patch_flow.ymax]\n",
    ),
})  # fmt: skip


def text_of(solver: str, tables: str) -> str:
    """Return the case of a solver, with tables of monitors."""
    text = CASES[solver].text.replace("ITERATIONS", str(STEPS))
    for old, new in TRIED[solver].changes.items():
        assert old in text
        text = text.replace(old, new, 1)
    return text + tables + "[output]\npicture = false\n"


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Return a writer of a case file, in the directory of now."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLUXLOOM_TUNING", str(tmp_path / "tuning.json"))

    def write(text: str) -> Path:
        path = tmp_path / "case.toml"
        path.write_text(text)
        return path

    return write


def table(path: Path) -> tuple[list[str], list[list[float]]]:
    """Return the heading and the lines of a table of numbers."""
    first, *lines = path.read_text().splitlines()
    return first.split(","), [[float(word) for word in line.split(",")] for line in lines]


@pytest.mark.parametrize("solver", TRIED)
def test_every_monitor(solver: str, tmp_path: Path, case: Callable[[str], Path], fluxloom: Call) -> None:
    """Files and columns are there, and finite; the plateau ends the run, of intervals and steps alike."""
    tried, folder = TRIED[solver], tmp_path / "results" / "small"
    done = fluxloom("run", case(text_of(solver, tried.tables())))
    assert done.code == 0, done.text
    assert "outputs lost" not in done.text
    assert json.loads((folder / "run.json").read_text())["ended_by"] == "stop.column"
    history, lines = table(folder / "history.csv")
    assert tried.column in history
    assert len(lines) >= 6
    assert np.isfinite(lines[-1]).all()
    assert {f"{tried.wall or 'ymax'}.{name}" for name in tried.passes} <= set(history)
    if tried.wall:
        forces = ("force_x", "force_y", "drag", "lift", *(() if solver == "lattice" else ("moment_z", "pitch")))
        forces = () if tried.scalar else forces
        assert {f"{tried.wall}.{name}" for name in forces} <= set(history)
    clock = "step" if tried.steady else "time"
    probes, values = table(folder / "probes.csv")
    assert {clock, f"a.{tried.value}", f"b.{tried.value}"} <= set(probes)
    assert len(values) >= 6
    profile, along = table(folder / "line_cut.csv")
    assert {"x", "y", "distance", tried.value} <= set(profile)
    assert len(along) == 5
    assert along[-1][profile.index(tried.value)] == pytest.approx(values[-1][probes.index(f"b.{tried.value}")])
    series, samples = table(folder / "line_cut_series.csv")
    assert series == [clock, *profile]
    assert len(samples) >= 10
    means, strips = table(folder / "profile.csv")
    assert {"x", tried.mean, f"{tried.mean}_rms"} <= set(means)
    assert len(strips) == 4
    assert "averages" in done.text
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "snapshot_000005.vtkhdf") as file:
        data = file["VTKHDF"]
        half = [data[place][name] for place in ("CellData", "PointData") if place in data for name in data[place]]
        assert len(half) == 1
        assert np.isfinite(half[0][:]).all()
    if tried.film:
        assert (folder / f"{tried.film}.gif").stat().st_size
    assert ("spectrum one" in done.text) == (not tried.steady)
    if tried.faces:
        columns, faces = table(folder / f"wall_{tried.wall}.csv")
        assert {"x", "y", "area", *tried.faces} <= set(columns)
        for name in tried.faces:
            assert np.isfinite([face[columns.index(name)] for face in faces]).all(), name
    for numbers in (values, along, samples, strips):
        assert np.isfinite(numbers).all()


GPUS = [
    pytest.param("opencl", marks=[pytest.mark.opencl, pytest.mark.long]), pytest.param("cuda", marks=pytest.mark.cuda),
]  # fmt: skip


@pytest.mark.parametrize("device", GPUS)
@pytest.mark.parametrize("solver", TRIED)
def test_devices_measure_the_same(
    solver: str, device: str, tmp_path: Path, case: Callable[[str], Path], fluxloom: Call
) -> None:
    """Each table of numbers is that of the processor to rounding, of a lattice in single precision."""
    path = case(text_of(solver, TRIED[solver].tables()))
    found: list[dict[str, tuple[list[str], list[list[float]]]]] = []
    for name in ("cpu", device):
        done = fluxloom("run", path, "--device", name, "--output", tmp_path / name)
        assert done.code == 0, done.text
        found.append({file.name: table(file) for file in sorted((tmp_path / name).glob("*.csv"))})
    first, second = found
    assert len(first) >= 4
    assert list(first) == list(second)
    for file, (columns, lines) in first.items():
        assert columns == second[file][0], file
        ours, theirs = (np.array(lines).reshape(-1, len(columns)) for lines in (lines, second[file][1]))
        assert ours.shape == theirs.shape, file
        size = np.abs(ours).max(axis=0, initial=0.01)
        for k, column in enumerate(columns):
            if column != "seconds":
                pair = (side[:, k] / size[k] for side in (ours, theirs))
                np.testing.assert_allclose(*pair, rtol=0.0, atol=1e-5, err_msg=f"{file} {column}")


WALLS_OF_SPACE = {
    "compressible": "slip", "incompressible": "wall", "edge_flow": "wall", "staggered": "wall",
    "edge_transport": "free", "diffusion": "insulated", "lattice": "",
}  # fmt: skip
FILMED = ("lattice", "staggered")


@pytest.mark.parametrize("solver", [
    pytest.param(name, marks=pytest.mark.long) if name == "compressible" else name for name in WALLS_OF_SPACE
])  # fmt: skip
def test_in_space(solver: str, tmp_path: Path, case: Callable[[str], Path], fluxloom: Call) -> None:
    """A slice, which plane flows do not have, and a film of the layer in the middle."""
    text = CASES[solver].text.replace("ITERATIONS", str(STEPS)).replace("[1.0, 0.0]", "[1.0, 0.0, 0.0]")
    text = text.replace('"triangle"', '"tetra"')
    size = "ny = 6" if solver == "compressible" else "ny = 8"
    assert size in text
    text = text.replace(size, f"{size}\nnz = 4")
    if kind := WALLS_OF_SPACE[solver]:
        text += "".join(f'[boundary.{side}]\ntype = "{kind}"\n' for side in ("zmin", "zmax"))
    tried, folder = TRIED[solver], tmp_path / "results" / "small"
    middle = 0.3
    text += "[output]\npicture = false\n"
    text += f'[slices.middle]\naxis = "z"\nat = {middle}\nsize = 6\nevery = 1\n'
    text += FILM.format(film=tried.film) if solver in FILMED else ""
    done = fluxloom("run", "-n", 2, case(text))
    assert done.code == 0, done.text
    assert (folder / f"{tried.film}.gif").exists() == (solver in FILMED)
    for name in ("slice_middle_000001.vti", "slice_middle.vti"):
        mesh, fields = read_image(folder / name)
        assert mesh.n_cells == 36
        assert np.isfinite(fields[tried.value]).all()


SLICE = '[slices.middle]\naxis = "y"\nat = 0.5\nsize = 4\n'
NO_SURFACE = [(f"{table}.ymin", f"[{table}.ymin]\n") for table in ("forces", "patch_flow", "walls")]
PERIODS = [
    ("probes", "[probes]\npoints.a = [1.5, 0.4]\nperiod = 1.0\n"), ("snapshots", "[snapshots]\nperiod = 1.0\n"),
    ("probes", "[probes]\npoints.a = [1.5, 0.4]\nspectrum = true\n"),
    ("spectra.s", '[spectra.s]\ncolumn = "residual"\n'),
]  # fmt: skip
REFUSED = [
    *((solver, "slices.middle", SLICE) for solver in TRIED),
    *(("edge_transport", *rest) for rest in NO_SURFACE),
    *(("tsunami", *rest) for rest in NO_SURFACE if "patch_flow" not in rest[0]),
    ("diffusion", "forces.ymin", "[forces.ymin]\n"), ("diffusion", "walls.ymin", "[walls.ymin]\nspeed = 1.0\n"),
    *(("airfoil", *rest) for rest in PERIODS),
    ("lattice", "walls.xmin", "[walls.xmin]\n"),
    *((solver, "movie", FILM.format(film="spede")) for solver in ("lattice", "tsunami", "airfoil")),
]  # fmt: skip


@pytest.mark.parametrize(("solver", "table", "text"), REFUSED, ids=[f"{one[0]}-{one[1]}" for one in REFUSED])
def test_what_has_no_meaning(
    solver: str, table: str, text: str, case: Callable[[str], Path], fluxloom: Call
) -> None:
    """`check` says the table, and where it stands."""
    done = fluxloom("check", case(text_of(solver, text)))
    assert done.code == 2, done.text
    assert f": {table}: " in done.err, done.text
