"""What is measured in a lattice Boltzmann flow: walls along sides, openings, forces that are refused, fields, films."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.flows.lattice.flow import Lattice
from fluxloom.flows.lattice.given.bodies import Body
from fluxloom.flows.lattice.given.numerics import Numerics
from fluxloom.flows.lattice.given.shapes import Box
from fluxloom.flows.lattice.given.sides import NoSlip
from fluxloom.flows.lattice.given.start import Start
from fluxloom.flows.lattice.given.units import Units
from fluxloom.lbm.streaming.schemes import InPlace, Pull, Push, Streaming, ThreePhase
from fluxloom.monitors.walls import Walls
from fluxloom.run.flow_run import FlowRun

Array = npt.NDArray[np.float64]

CHANNEL = """
[case]
name = "channel"
solver = "lattice"
[mesh]
nx = 24
ny = 12
spacing = 0.1
[fluid]
viscosity = 0.05
[boundary]
xmin = { type = "velocity", velocity = [1.0, 0.0] }
xmax = { type = "pressure" }
ymin = { type = "wall" }
ymax = { type = "slip" }
[body.disk]
shape = "circle"
center = [1.0, 0.6]
diameter = 0.4
[run]
iterations = 100
threads = 1
"""


def built(more: str) -> FlowRun[Lattice]:
    """Return a channel with a wall below, a plane of symmetry above, and a disk."""
    case, application = parse_case(Document(Path("case.toml"), tomllib.loads(CHANNEL + more), {}))
    return application.build(case, Context("cpu", threads=1, tuning=False))


# -------------------------------------------------------------------------------------------- forces, openings


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("[forces.xmin]", r"forces\.xmin: no force is measured on 'xmin', a Velocity: only walls measure it"),
        ("[forces.xmax]", r"forces\.xmax: no force is measured on 'xmax', a Pressure"),
        ("[forces.ymax]", r"forces\.ymax: no force is measured on 'ymax', a Slip.*\(measured on: 'disk', 'ymin'\)"),
        ('[forces.all]\npatches = ["disk", "xmin"]', r"forces\.all: no force is measured on 'xmin'"),
        ("[walls.disk]", r"walls\.disk: .*'disk', a body, whose walls are links .*\(ymin\).*\[forces\.disk\]"),
        ("[walls.ymax]", r"walls\.ymax: .*'ymax', no wall"),
        ("[walls.nothing]", r"walls\.nothing: there is no side or body 'nothing'"),
    ],
)
def test_what_has_no_force_or_no_faces_is_refused(table: str, words: str) -> None:
    """Before the run, with the table; it had NaN to the end."""
    with pytest.raises(CaseError, match=words):
        built(table)


def test_nothing_passes_a_plane_of_symmetry(tmp_path: Path) -> None:
    """The centres of its cells are half a cell inside, where fluid moves across; the mean pressure is there."""
    made = built("[patch_flow.ymax]\n[patch_flow.xmin]\n[history]\nevery = 10\n")
    result = fl.run(made.flow, fl.Steps(40), made.monitors, directory=tmp_path)
    rows = np.genfromtxt(tmp_path / "history.csv", delimiter=",", names=True)
    assert result.steps == 40
    assert (rows["ymaxflow"] == 0.0).all()
    assert np.abs(made.flow.fields()["v"].reshape(12, 24)[-1]).max() > 1e-4
    assert rows["ymaxp"][-1] != 0.0
    assert rows["xminflow"][-1] == pytest.approx(-1.2, rel=1e-2)


# --------------------------------------------------------------------------------------------------- walls


def between_plates(
    force: float, top: Any, streaming: Streaming = Pull(), *, d: int = 2, precision: str = "float64",
    context: Context | None = None,
) -> Lattice:  # fmt: skip
    """Return flow between plates that are a length of 1 apart, of density 2 and viscosity 1/4, 8 cells across."""
    units = Units.of(0.125, viscosity=0.25, density=2.0, lower=(0.0,) * d)
    return Lattice(
        (6, 8, 5)[:d], units, context or Context("cpu", threads=1, tuning=False),
        boundaries={"ymin": NoSlip(), "ymax": NoSlip((top, *(0.0,) * (d - 1)))}, force=(force, *(0.0,) * (d - 1)),
        numerics=Numerics(streaming=streaming, precision=precision),
    )  # fmt: skip


@pytest.mark.parametrize("streaming", [Pull(), Push(), ThreePhase(), InPlace()], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(("force", "top"), [(0.5, 0.0), (0.0, 0.3), (0.2, 0.1)])
def test_the_shear_of_poiseuille_and_couette_is_exact(force: float, top: float, streaming: Streaming) -> None:
    """``rho (g h / 2 +- nu u / h)`` on the walls, to round-off, with y+ of the first cells, and no pressure."""
    walls = Walls("plates", ["ymin", "ymax"], fl.Reference(1.0, density=2.0))
    fl.run(between_plates(force, top, streaming), fl.Steps(4000), [walls])
    found = walls.columns_of["wall_plates"]
    shear = np.repeat([2.0 * (0.5 * force + 0.25 * top), 2.0 * (0.5 * force - 0.25 * top)], 6)
    np.testing.assert_allclose(found["tau_x"], shear, atol=1e-12)
    np.testing.assert_allclose(found["cf"], np.abs(shear), atol=1e-12)
    np.testing.assert_allclose(found["p"], 0.0, atol=1e-12)
    np.testing.assert_allclose(found["y_plus"], 0.0625 * np.sqrt(np.abs(shear) / 2.0) / 0.25, atol=1e-6)
    np.testing.assert_allclose(found["x"], np.tile(0.0625 + 0.125 * np.arange(6), 2))
    np.testing.assert_array_equal(found["y"], np.repeat([0.0, 1.0], 6))
    np.testing.assert_array_equal(found["ny"], np.repeat([-1.0, 1.0], 6))


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("top", ["0.3 * cos(5 * t)", "0.2 * sin(2 * pi * x / 0.75)"])
def test_faces_add_up_to_the_force(top: str, d: int) -> None:
    """They are of now, which the next step measures: on walls that move in time, or by place."""
    flow = between_plates(0.3, top, d=d)
    names = ("ymin", "ymax")
    walls, forces = [flow.surface([name]) for name in names], [flow.surface([name]) for name in names]
    for _ in range(7):
        flow.advance(fl.Steps(99))
    before = [wall.faces() for wall in walls]
    flow.advance(fl.Steps(99))
    for faces, force in zip(before, forces, strict=True):
        force.take()
        area = faces["area"]
        sums = [area @ faces[f"tau_{x}"] + area @ (faces["p"] * faces[f"n{x}"]) for x in "xyz"[:d]]
        np.testing.assert_allclose(sums, force.collect().force, rtol=1e-9, atol=1e-12)
        assert abs(sums[0]) > 1e-6


def test_walls_on_ranks(tmp_path: Path) -> None:
    """The same as on one, in single precision too."""

    def found(comm: Comm) -> Any:
        context = Context("cpu", threads=1, tuning=False, comm=comm)
        walls = Walls("ymax", axis="x", cuts=[0.3])
        fl.run(between_plates(0.3, 0.2, d=3, precision="float32", context=context), fl.Steps(9), [walls])
        return walls.columns_of

    one, three = run_threads(1, found)[0], run_threads(3, found)[0]
    assert {name: len(table["tau"]) for name, table in one.items()} == {"wall_ymax": 30, "wall_ymax_x_0.3": 5}
    for name, table in one.items():
        for column, values in table.items():
            np.testing.assert_array_equal(values, three[name][column], err_msg=column)


def test_a_wall_ends_where_others_have_its_links(tmp_path: Path) -> None:
    """At the inlet, at the outlet, and beside a body that stands on it there are no values, and under it neither."""
    block = '[body.block]\nshape = "box"\nlow = [0.3, -1.0]\nhigh = [0.5, 0.2]\n[walls.ymin]\nspeed = 1.0\n'
    made = built(block)
    fl.run(made.flow, fl.Steps(30), made.monitors, directory=tmp_path)
    table = np.genfromtxt(tmp_path / "wall_ymin.csv", delimiter=",", names=True)
    known = [k for k in range(24) if np.isfinite(table["tau_x"][k])]
    assert known == [1, *range(6, 23)]
    assert np.isfinite(table["y_plus"][known]).all()
    assert np.isfinite(table["cp"][known]).all()


@pytest.mark.long
def test_reattachment_behind_a_step(tmp_path: Path) -> None:
    """Half as high as the channel, Reynolds number 50 of its height: 2.85 heights behind it, as finite volumes say."""
    text = """
[case]
name = "step"
solver = "lattice"
[mesh]
nx = 240
ny = 40
spacing = 0.025
origin = [-1.0, 0.0]
[fluid]
viscosity = 0.01
[time]
lattice_velocity = 0.05
end = 40.0
[boundary]
xmin = { type = "velocity", velocity = ["where(y > 0.5, 24 * (y - 0.5) * (1 - y), 0)", 0.0] }
xmax = { type = "pressure" }
ymin = { type = "wall" }
ymax = { type = "wall" }
[body.step]
shape = "box"
low = [-2.0, -1.0]
high = [0.0, 0.5]
[walls.ymin]
[run]
iterations = 100000
"""
    case, application = parse_case(Document(Path("case.toml"), tomllib.loads(text), {}))
    made = application.build(case, Context("cpu", threads=2, tuning=False))
    fl.run(made.flow, fl.Time(40.0), made.monitors, directory=tmp_path)
    (walls,) = (one for one in made.monitors if isinstance(one, Walls))
    assert walls.reattachment[:, 0] == pytest.approx([1.4227], rel=0.03)


# -------------------------------------------------------------------------------------------- fields, films


def turning(d: int, context: Context, cells: Sequence[int] = (9, 8, 7)) -> tuple[Lattice, Array]:
    """Return a flow with a block in it whose velocity is linear at the start, and the gradient ``du_i / dx_j``."""
    g = np.array([[0.3, -0.5, 0.2], [0.4, -0.1, 0.6], [-0.2, 0.1, -0.1]])[:d, :d]
    units = Units.of(0.1, viscosity=0.1, lower=(0.0,) * d)
    walls = {f"{x}{end}": NoSlip() for x in "xyz"[:d] for end in ("min", "max")}
    block = Body(Box((0.3,) * d, (0.5,) * d), "bounce-back")
    start = Start(lambda at: at @ g.T, "0.1 * x")
    flow = Lattice(cells[:d], units, context, boundaries=walls, bodies={"block": block}, start=start,
                   numerics=Numerics(precision="float64"))  # fmt: skip
    return flow, g


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("ranks", [1, 2])
def test_derived_fields_of_a_linear_velocity_are_exact(d: int, ranks: int) -> None:
    """In every cell of the fluid, beside sides and a body too, where differences are one-sided; 0 in the body."""

    def found(comm: Comm) -> Any:
        flow, g = turning(d, Context("cpu", threads=1, tuning=False, comm=comm))
        names = ("vorticity", "divergence", "q_criterion", "total_pressure", "p", "speed", "fluid")
        return g, dict(flow.fields().chosen(names))

    for g, fields in run_threads(ranks, found):
        fluid = fields["fluid"] > 0
        strain, turn = 0.5 * (g + g.T), 0.5 * (g - g.T)
        curl = g[1, 0] - g[0, 1]
        if d == 3:
            curl = float(np.linalg.norm([curl, g[2, 1] - g[1, 2], g[0, 2] - g[2, 0]]))
        q = 0.5 * ((turn**2).sum() - (strain**2).sum())
        for name, value in {"vorticity": curl, "divergence": np.trace(g), "q_criterion": q}.items():
            np.testing.assert_allclose(fields[name][fluid], value, rtol=1e-9, err_msg=name)
            np.testing.assert_array_equal(fields[name][~fluid], 0.0)
        np.testing.assert_allclose(fields["total_pressure"], fields["p"] + 0.5 * fields["speed"] ** 2, rtol=1e-12)
        assert np.ptp(fields["p"][fluid]) > 1e-3


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("field", ["p", "u", "v", "speed", "vorticity"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_pictures_are_of_the_fields(field: str, d: int, ranks: int) -> None:
    """In the plane all cells, in space those in the middle across z."""

    def seen(comm: Comm) -> Any:
        flow, _ = turning(d, Context("cpu", threads=1, tuning=False, comm=comm))
        flow.advance(fl.Steps(1))
        frames, pictures = flow.frames(field), list[Array | None]()
        frames.ask(pictures.append)
        frames.settle()
        whole = flow.pieces.whole(flow.fields()[field].reshape([w.stop - w.start for w in flow.pieces.window]))
        return frames, pictures, whole, flow.solver.fluid

    frames, (picture,), whole, fluid = run_threads(ranks, seen)[0]
    middle = whole[len(whole) // 2] if d == 3 else whole
    inside = fluid[len(fluid) // 2] if d == 3 else fluid
    np.testing.assert_array_equal(frames.hidden, ~inside)
    np.testing.assert_allclose(picture[inside], middle[inside], rtol=1e-6, atol=1e-12)
    assert frames.signed == (field in ("p", "u", "v") or (field == "vorticity" and d == 2))
    assert frames.largest == {"p": 1.0, "vorticity": 4.0}.get(field, 1.5)
