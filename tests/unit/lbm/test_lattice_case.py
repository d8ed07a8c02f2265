"""Cases of lattice Boltzmann flow: tables, units, errors, files, and runs that go on."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.cases.lattice.advice import advices
from fluxloom.cases.lattice.case import LatticeApplication
from fluxloom.cases.lattice.tables import LatticeCase, units_of
from fluxloom.core.errors import CaseError, FluxloomError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.flows.lattice.flow import Lattice
from fluxloom.lbm.collisions.operators import BGK, MRT, TRT, Collision, Cumulant, Regularised
from fluxloom.monitors.probes import Probes
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.results.image_data import write_image
from fluxloom.run.results.movies import Movie
from fluxloom.run.results.results import ResultFolder
from tests.lattice_cases import immersed_of, particle_places

CHANNEL: dict[str, Any] = {
    "case": {"name": "channel", "solver": "lattice"},
    "run": {"iterations": 24},
    "mesh": {"nx": 32, "ny": 16, "spacing": 0.125},
    "fluid": {"reynolds": 50},
    "boundary": {
        "xmin": {"type": "velocity", "velocity": [1.0, 0.0]}, "xmax": {"type": "outflow"},
    },
    "body": {"disk": {"shape": "circle", "center": [1.5, 1.0], "diameter": 0.5}},
    "forces": {"disk": {}},
    "history": {"every": 2},
    "time": {"residual_interval": 5},
}  # fmt: skip

SMALL = {"nx": 16, "ny": 10, "spacing": 0.125}


def tables(**changes: Any) -> dict[str, Any]:
    """Return the tables of the channel with some replaced; None takes one out."""
    return {key: value for key, value in (CHANNEL | changes).items() if value is not None}


def load(**changes: Any) -> LatticeCase:
    """Return a case as it is loaded from a file."""
    case, application = parse_case(Document(Path("case.toml"), tables(**changes), {}))
    assert isinstance(application, LatticeApplication)
    assert isinstance(case, LatticeCase)
    return case


def build(**changes: Any) -> FlowRun[Lattice]:
    """Return a case that is ready to run."""
    return LatticeApplication().build(load(**changes), Context("reference"))


def steps(runner: FlowRun[Lattice], count: int) -> None:
    """Advance."""
    for _ in range(count):
        runner.advance()


def test_fields_that_are_asked_for_have_a_file() -> None:
    """Image data have always the same ones."""
    assert load().output.format == "none"
    assert load(output={"fields": ["q_criterion"]}).output.format == "auto"
    assert load(output={"fields": ["q_criterion"], "format": "vtu"}).output.format == "vtu"


def test_units() -> None:
    """Every quantity of the lattice follows from cell, step and density."""
    units = units_of(load(time={"lattice_velocity": 0.1}, fluid={"viscosity": 0.02, "density": 2.0}))
    assert (units.dx, units.dt, units.speed) == pytest.approx((0.125, 0.0125, 10.0))
    assert units.lattice_viscosity == pytest.approx(0.02 * 0.0125 / 0.125**2)
    assert units.force == pytest.approx(2.0 * 0.125**3 / 0.0125**2)
    assert units.place([0.0, 0.125]) == pytest.approx((0.5, -0.5))
    assert np.stack(units.points(np.array([[0.5, -0.5]])), axis=1)[0] == pytest.approx([0.0, 0.125])
    assert units.mach == pytest.approx(0.1 * np.sqrt(3.0))
    assert units_of(load(time={"mach": 0.2})).mach == pytest.approx(0.2)
    assert units_of(load(time={"dt": 0.002})).dt == 0.002
    assert units_of(load()).viscosity == pytest.approx(1.0 / 50.0)


def test_advices() -> None:
    """What may spoil the results is told, and good cases get no advice."""
    case = load(mesh={"nx": 40, "ny": 40, "spacing": 0.04}, fluid={"reynolds": 20})
    assert advices(case, units_of(case)) == []
    case = load(fluid={"reynolds": 1e5}, lattice={"collision": "bgk"}, time={"lattice_velocity": 0.15})
    found = "\n".join(advices(case, units_of(case)))
    assert all(text in found for text in ("Mach number 0.26", "Reynolds number of a cell", "body.disk: 4 cells"))
    rows = LatticeApplication().estimate(case).rows
    assert [name for name, _ in rows].count("warning") == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fluid": {"renolds": 50}}, "did you mean 'reynolds'"),
        ({"fluid": {"reynolds": 50, "viscosity": 1.0}}, "give one of viscosity and reynolds"),
        ({"fluid": {}}, "give one of viscosity and reynolds"),
        ({"time": {"mach": 0.1, "dt": 0.1}}, "give only one of mach and dt"),
        ({"boundary": {"zmin": {"type": "wall"}}}, "boundary.zmin: the box is plane"),
        ({"boundary": {"xmin": {"type": "slip", "velocity": [1.0, 0.0]}}}, "has no velocity"),
        ({"boundary": {"xmin": {"type": "velocity"}}}, "give velocity"),
        ({"boundary": {"xmin": {"type": "wall", "scheme": "zou-he"}}}, "takes none"),
        ({"body": {"a": {"shape": "circle", "center": [1.0, 1.0]}}}, "needs diameter"),
        ({"body": {"a": {"shape": "box", "low": [1, 1], "high": [2, 2], "diameter": 1}}}, "has no diameter"),
        ({"body": {"a": CHANNEL["body"]["disk"] | {"motion": "free", "density": 2.0}}}, 'needs condition = "immersed"'),
        ({"movie": {"rate": 3}}, "there is no film"),
        ({"lattice": {"collision": {"type": "bgk", "magic": 0.2}}}, "lattice.collision: bgk: no key 'magic'"),
        ({"lattice": {"collision": "cumulants"}}, "did you mean 'cumulant'"),
        ({"lattice": {"collision": {"type": "trt", "magic": 0.0}}}, "magic parameter must be positive"),
        ({"lattice": {"magic": 0.3}}, "magic is called collision.magic now: write collision = { type = ..., magic"),
        ({"particles": {"count": 3}}, "particles need"),
        ({"partition": {"method": "rcb"}}, "a lattice is cut into boxes"),
        ({"immersed": {"delta": "peskin"}}, "no body has condition"),
    ],
)
def test_wrong_tables(changes: dict[str, Any], message: str) -> None:
    """What is wrong in a table is told when the file is read."""
    with pytest.raises(CaseError, match=message):
        load(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"time": {"lattice_velocity": 0.2}}, "Mach number of the reference velocity is 0.346"),
        ({"boundary": {"xmin": CHANNEL["boundary"]["xmin"]}}, "side 'xmax' has no condition"),
        ({"boundary": {"north": {"type": "wall"}}}, "no side of the box"),
        ({"boundary": {"ymin": {"type": "wall", "velocity": [9.0, 0.0]}}}, "boundary.ymin: the velocity"),
        ({"initial": {"velocity_x": "5 * y"}}, "initial: the velocity has a Mach number"),
        ({"initial": {"velocity_z": "1"}}, "initial.velocity_z: the mesh has 2 dimensions"),
        ({"body": {"a": CHANNEL["body"]["disk"] | {"center": [9.0, 1.0]}}, "forces": None}, "body.a: .*outside"),
        ({"body": {"a": CHANNEL["body"]["disk"] | {"shape": "sphere"}}, "forces": None}, "body.a.shape: 'sphere'"),
        ({"forces": {"dusk": {}}}, "forces.dusk: .*did you mean 'disk'"),
        ({"lattice": {"name": "D3Q19"}}, "lattice.name: D3Q19 has 3 dimensions"),
        (
            {"particles": {"count": 500, "diameter": 0.5, "density": 2.0, "gravity": [0.0, -1.0]}},
            "particles.count: only .* of 500 found room",
        ),
    ],
)
def test_wrong_cases(changes: dict[str, Any], message: str) -> None:
    """What is wrong only together is told when the case is built."""
    with pytest.raises(CaseError, match=message):
        build(**changes)


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ({}, TRT()),
        ({"collision": "cumulant"}, Cumulant()),
        ({"collision": {"type": "mrt", "bulk": 1.3, "smagorinsky": 0.1}}, MRT(bulk=1.3, smagorinsky=0.1)),
        ({"collision": {"type": "trt", "magic": 0.25}}, TRT(magic=0.25)),
        ({"collision": "regularised"}, Regularised()),
        ({"collision": "fluxloom.lbm.collisions.operators:BGK"}, BGK()),
    ],
)
def test_collisions(table: dict[str, Any], wanted: Collision) -> None:
    """An operator is a name, or a table of its numbers."""
    assert load(lattice=table).lattice.collision == wanted


def test_lost() -> None:
    """A flow that blows up ends the run, at the next look, with one message that says what to change."""
    runner = build(mesh=SMALL, time={"residual_interval": 8})
    steps(runner, 4)
    values = runner.flow.solver.populations.read()
    values[5, 8, 1] = np.inf  # between two looks
    runner.flow.solver.populations.write(values)
    with np.errstate(all="ignore"), pytest.raises(SolverError, match=r"step 8: .*not finite any more; lower time"):
        steps(runner, 20)




def test_results(tmp_path: Path) -> None:
    """Files, columns and rows of a run; drag is that of the force in units of the case."""
    runner = build(mesh=SMALL, movie={"every": 10}, output={"every": 10})
    assert runner.flow.updates == 16 * 10
    runner.begin(ResultFolder(tmp_path))
    steps(runner, 20)
    force = runner.flow.solver.force_on("disk")[1] * runner.flow.units.force
    assert runner.history.column("disk.force_x")[-1] == pytest.approx(force)
    assert runner.history.column("disk.drag")[-1] == pytest.approx(2.0 * force)
    assert runner.history.column("time")[-1] == pytest.approx(20 * runner.flow.units.dt)
    runner.finish()
    found = runner.folder.written
    wanted = {"history.csv", "vorticity.gif", "final.vti", "fields_00000010.vti", "speed.png", "vorticity.png"}
    assert wanted <= set(found)
    assert all((tmp_path / name).stat().st_size > 0 for name in found)
    rows = dict(runner.summary())
    assert rows["lattice"].startswith("Re 50, velocity 0.05 cells a step")
    assert {"disk", "disk, mean", "memory"} <= set(rows)
    fields = runner.fields()
    assert len(fields["speed"]) == runner.mesh().n_cells == runner.flow.cells
    assert (fields["speed"][fields["fluid"] == 0] == 0).all()


def test_image_data(tmp_path: Path) -> None:
    """Values are where the offsets say, x fastest; vectors have three components."""
    p, u = np.arange(6.0).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    write_image(tmp_path / "a.vti", {"p": p, "u": u, "on": p > 2}, origin=(1.0, 2.0), spacing=0.5)
    data = (tmp_path / "a.vti").read_bytes()
    head, _, rest = data.partition(b'<AppendedData encoding="raw">\n   _')
    root = ElementTree.fromstring(head + b"</VTKFile>")
    image = root.find("ImageData")
    assert image is not None
    assert image.attrib == {"WholeExtent": "0 3 0 2 0 1", "Origin": "1 2 0", "Spacing": "0.5 0.5 0.5"}
    arrays = {array.attrib["Name"]: array.attrib for array in root.iter("DataArray")}
    types = {"Float64": "<f8", "Float32": "<f4", "UInt8": "u1"}

    def values(name: str) -> np.ndarray[Any, Any]:
        offset = int(arrays[name]["offset"])
        size = int(np.frombuffer(rest, "<u8", 1, offset)[0])
        return np.frombuffer(rest[offset + 8 : offset + 8 + size], types[arrays[name]["type"]])

    assert (values("p") == p.ravel()).all()
    assert (values("u").reshape(2, 3, 3)[..., :2] == u).all()
    assert (values("u").reshape(2, 3, 3)[..., 2] == 0).all()
    assert values("on").tolist() == [0, 0, 0, 1, 1, 1]
    with pytest.raises(FluxloomError, match="field 'q' has the shape"):
        write_image(tmp_path / "b.vti", {"p": p, "q": p[:1]}, origin=(0.0, 0.0), spacing=1.0)
    assert not (tmp_path / "b.vti").exists()


def test_movie(tmp_path: Path) -> None:
    """A film has its pictures, y upward, and bodies are grey."""
    image = pytest.importorskip("PIL.Image")
    movie = Movie(tmp_path / "a.gif", 0.0, 1.0)
    field = np.zeros((4, 6))
    field[3, 0] = 1.0
    hidden = np.zeros((4, 6), dtype=bool)
    hidden[0, 5] = True
    movie.add(field, hidden)
    movie.add(1.0 - field)
    assert movie.finish()
    film = image.open(tmp_path / "a.gif")
    assert film.n_frames == 2
    pixels = np.asarray(film.convert("RGB"))
    assert pixels[0, 0].tolist() == movie.palette[254].tolist()
    assert pixels[3, 5].tolist() == movie.palette[255].tolist()
    assert not Movie(tmp_path / "b.gif", 0.0, 1.0).finish()
    with pytest.raises(FluxloomError, match="films are"):
        Movie(tmp_path / "a.avi", 0.0, 1.0)


def test_prescribed() -> None:
    """The pose of a prescribed motion is that of the formulas, in cells and steps, x last."""
    disk = CHANNEL["body"]["disk"]
    moves = {"condition": "immersed", "motion": "prescribed", "position_x": "0.25 * sin(t)", "angle": "3 * t"}
    case = load(body={"disk": disk | moves})
    units, boundary = units_of(case), immersed_of(case)
    assert boundary is not None
    motion = boundary.bodies[0].motion
    pose = motion.pose(80.0)  # pyright: ignore[reportAttributeAccessIssue]
    t = 80.0 * units.dt
    assert pose.centre == pytest.approx([7.5, 11.5 + 2.0 * np.sin(t)])
    assert pose.velocity == pytest.approx([0.0, 2.0 * np.cos(t) * units.dt], rel=1e-6)
    assert (pose.angle, pose.spin) == pytest.approx((3.0 * t, 3.0 * units.dt))


def test_particles() -> None:
    """Particles are where they may be, apart from each other; the seed decides."""
    table = {"count": 3, "diameter": 0.4, "density": 2.0, "gravity": [0.0, -1.0], "low": [2.0, 0.0], "high": [4.0, 2.0]}
    case = load(particles=table)
    places = particle_places(case)
    distances = np.linalg.norm(places[:, None] - places, axis=2)[np.triu_indices(3, 1)]
    assert distances.min() >= 0.4 / 0.125 + 2.0
    assert places[:, 1].min() >= 2.0 / 0.125 - 0.5 + 1.6
    other = load(particles=table | {"seed": 1})
    assert not np.allclose(places, particle_places(other))


@pytest.mark.parametrize("cells", [7, 8])
def test_probes_may_be_at_both_ends_of_the_box(cells: int) -> None:
    """And not beyond."""
    walls = {f"{axis}{end}": {"type": "wall"} for axis in "xy" for end in ("min", "max")}
    points = {"a": [1.0, 1.0], "b": [0.0, 1.0], "c": [0.0, 0.0], "d": [0.3, 1.0]}
    mesh = {"nx": cells, "ny": cells, "spacing": 1.0 / cells}
    case = load(mesh=mesh, boundary=walls, body={}, forces={}, probes={"every": 1, "points": points})
    runner = LatticeApplication().build(case, Context("cpu", threads=1))
    assert any(isinstance(one, Probes) for one in runner.monitors)
    beyond = load(mesh=mesh, boundary=walls, body={}, forces={}, probes={"every": 1, "points": {"a": [1.001, 0.5]}})
    with pytest.raises(FluxloomError, match="probes"):
        LatticeApplication().build(beyond, Context("cpu", threads=1))


def test_check_warns_of_coarse_cells_by_collision_and_of_the_fastest_velocity() -> None:
    """The cavity that is lost with TRT at a Reynolds number of 21 of a cell; a lid given by a formula is seen too."""
    walls = {f"{axis}{end}": {"type": "wall"} for axis in "xyz" for end in ("min", "max")}
    lids = ({"velocity": [1.0, 0.0, 0.0]}, {"velocity_x": "1.0"})
    for lid in lids:
        for reference, collision, warned in ((1.0, "trt", True), (0.5, "trt", True), (1.0, "cumulant", False)):
            case = load(
                mesh={"nx": 48, "ny": 48, "nz": 48, "length": 1.0}, boundary=walls | {"ymax": {"type": "wall"} | lid},
                body={}, forces={}, fluid={"viscosity": 1e-3}, reference={"velocity": reference, "length": 1.0},
                time={"lattice_velocity": 0.1 * reference}, lattice={"collision": collision},
            )  # fmt: skip
            found = "\n".join(advices(case, units_of(case)))
            assert ("Reynolds number of a cell 20.8" in found) == warned


def test_an_immersed_body_that_links_lead_through_is_refused() -> None:
    """With their number; a body two cells thick is not."""
    for thick, refused in ((0.04, True), (0.3, False)):
        body = {"shape": "box", "low": [0.77, 0.4], "high": [0.77 + thick, 0.6], "condition": "immersed"}
        case = load(body={"plate": body}, forces={})
        if refused:
            with pytest.raises(SolverError, match=r"body\.plate: \d+ links between cells lead through the body"):
                immersed_of(case)
        else:
            assert immersed_of(case) is not None


SPACE: dict[str, Any] = {
    "case": {"name": "box", "solver": "lattice"}, "run": {"iterations": 20},
    "mesh": {"nx": 12, "ny": 8, "nz": 6, "spacing": 0.125}, "fluid": {"reynolds": 20},
    "boundary": {"xmin": {"type": "velocity", "velocity": [1.0, 0.0, 0.0]}, "xmax": {"type": "outflow"},
                 "zmin": {"type": "wall"}, "zmax": {"type": "wall"}},
    "body": {"ball": {"shape": "sphere", "center": [0.6, 0.5, 0.4], "diameter": 0.4}},
    "forces": {"ball": {"point": [0.6, 0.5, 0.4]}, "walls": {"patches": ["zmin", "zmax"]}},
    "patch_flow": {"outlet": {"patches": "xmax"}}, "history": {"every": 2},
    "probes": {"points": {"wake": [1.1, 0.5, 0.4]}},
    "lines": {"middle": {"start": [0, 0.5, 0.4], "end": [1.5, 0.5, 0.4]}},
    "slices": {"across": {"axis": "y", "at": 0.5}}, "statistics": {"every": 2, "profile": "z"},
    "snapshots": {"every": 10}, "movie": {"every": 10}, "output": {"every": 10},
}  # fmt: skip


def test_every_monitor_of_cases(tmp_path: Path) -> None:
    """All tables at once, in space: their files, columns and rows."""
    case, application = parse_case(Document(Path("case.toml"), SPACE, {}))
    runner = application.build(case, Context("cpu", threads=1, tuning=False))
    runner.begin(ResultFolder(tmp_path))
    steps(runner, 20)
    runner.finish()
    files = {
        "history.csv", "probes.csv", "line_middle.csv", "slice_across.vti", "profile.csv", "vorticity.gif", "final.vti",
        "fields_00000010.vti", "speed_z.png",
    }  # fmt: skip
    assert files <= set(runner.folder.written)
    assert any(name.startswith("snapshot_000010.") for name in runner.folder.written)
    columns = runner.columns()
    assert columns["ball.drag"] > 1.0
    assert abs(columns["ball.moment_x"]) < 1e-3
    assert "walls.moment_x" not in columns
    fields = runner.fields()
    assert columns["outlet.flow"] == pytest.approx(fields["u"].reshape(6, 8, 12)[..., -1].sum() * 0.125**2, rel=1e-5)
    assert columns["outlet.flow"] > 0.2
    assert np.isfinite(fields["u_mean"]).all()
    assert fields["u_mean"].max() > 1.0
