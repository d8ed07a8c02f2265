"""What acts on patches, and passes them, for all solvers, from case files: exact for linear fields; Couette's flow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.monitors.forces import Forces, Reference
from fluxloom.run.results.results import ResultFolder
from tests.state_runs import leg
from tests.unit.monitors.surface_cases import built, ring, run, table

SHEAR = """
[case]
name = "shear"
solver = "{solver}"
[mesh]
{mesh}
[fluid]
viscosity = 0.1
[initial]
velocity_x = "y"
[boundary.xmin]
type = "inflow"
velocity_x = "y"
[boundary.xmax]
type = "outflow"
[boundary.ymin]
type = "wall"
[boundary.ymax]
type = "wall"
velocity = [1.0, 0.0{zero}]
{ends}
[time]
dt = 0.01
[forces.ymax]
speed = 2.0
area = 0.5
length = 0.25
[forces.about]
patches = ["ymin", "ymax"]
point = [0.0, 1.0{zero}]
[patch_flow.xmin]
[patch_flow.out]
patches = ["xmax"]
[walls.ymax]
speed = 2.0
[history]
every = 1
[run]
iterations = 2
threads = 1
"""
"""``u = y`` in a box, ``tau = 0.1``."""

BOX = "nx = 4\nny = 5\nnz = 3\nz = [0.0, 0.5]"
PLANE = "nx = 4\nny = 5"
ENDS = '[boundary.zmin]\ntype = "symmetry"\n[boundary.zmax]\ntype = "symmetry"'
MESHES = {
    "bricks": ("incompressible", BOX, 3),
    "tetrahedra": ("incompressible", BOX + '\nkind = "tetra"', 3),
    "triangles": ("incompressible", PLANE + '\nkind = "triangle"', 2),
    "edges of tetrahedra": ("edge_flow", BOX + '\nkind = "tetra"', 3),
    "edges of triangles": ("edge_flow", PLANE + '\nkind = "triangle"', 2),
    "staggered": ("staggered", BOX, 3),
    "staggered plane": ("staggered", PLANE, 2),
}


def shear(mesh: str) -> str:
    solver, text, d = MESHES[mesh]
    return SHEAR.format(solver=solver, mesh=text, zero=", 0.0" if d == 3 else "", ends=ENDS if d == 3 else "")


LONG = ("triangles", "edges of triangles", "staggered plane")


@pytest.mark.parametrize(
    "mesh", [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in MESHES]
)
def test_shear(mesh: str, tmp_path: Path) -> None:
    """Force, torque about any point, coefficients, flow through patches and wall shear stress, in every solver."""
    made, d = run(shear(mesh), tmp_path), MESHES[mesh][2]
    found = {name: values[-1] for name, values in table(tmp_path / "history.csv").items()}
    span = 0.5 if d == 3 else 1.0
    assert found["ymax.force_x"] == pytest.approx(-0.1 * span, rel=1e-9, abs=1e-9)
    assert found["ymax.force_y"] == pytest.approx(0.0, abs=1e-9)
    assert found["ymax.moment_z"] == pytest.approx(0.1 * span, rel=1e-9, abs=1e-9)
    assert found["about.moment_z"] == pytest.approx(0.1 * span, rel=1e-9, abs=1e-9)  # of ymin alone, which is 1 below
    if d == 3:
        assert found["ymax.moment_x"] == pytest.approx(0.0, abs=1e-9)
        assert found["ymax.moment_y"] == pytest.approx(-0.1 * 0.5**2 / 2, rel=1e-9, abs=1e-9)
    q = 0.5 * 2.0**2
    assert found["ymax.drag"] == pytest.approx(-0.1 * span / (q * 0.5), rel=1e-9, abs=1e-9)
    assert found["ymax.lift"] == pytest.approx(0.0, abs=1e-9)
    assert found["ymax.pitch"] == pytest.approx(-0.1 * span / (q * 0.5 * 0.25), rel=1e-9, abs=1e-9)
    assert found["out.flow"] == pytest.approx(0.5 * span, rel=1e-9, abs=1e-9)
    assert found["xmin.flow"] == pytest.approx(-0.5 * span, rel=1e-9, abs=1e-9)
    assert found["out.p"] == pytest.approx(0.0, abs=1e-9)
    assert found["out.total_pressure"] == pytest.approx(1 / 6, rel=0.1)
    wall = table(tmp_path / "wall_ymax.csv")
    assert wall["area"].sum() == pytest.approx(span, rel=1e-8)
    inside = slice(None) if "edges" not in mesh else np.flatnonzero((wall["x"] > 0.0) & (wall["x"] < 1.0))
    assert wall["tau_x"][inside] == pytest.approx(-0.1, rel=1e-8)
    assert wall["tau"][inside] == pytest.approx(0.1, rel=1e-8)
    assert wall["cf"][inside] == pytest.approx(0.05, rel=1e-8)
    assert wall["ny"] == pytest.approx(1.0)
    assert wall["y"] == pytest.approx(1.0)
    assert (wall["moves"] == 1.0).all()
    assert "mean" in dict(made.summary())["ymax, y+"]
    forces = next(one for one in made.monitors if isinstance(one, Forces) and one.name == "ymax")
    assert forces.cd == pytest.approx(found["ymax.drag"], rel=1e-11)
    assert forces.moment[2] == pytest.approx(found["ymax.moment_z"], rel=1e-11)
    assert forces.series.time.tolist() == pytest.approx([0.01, 0.02])
    assert forces.series.drag == pytest.approx(found["ymax.drag"], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("mesh", ["tetrahedra", "edges of tetrahedra"])
def test_two_ranks(mesh: str, tmp_path: Path) -> None:
    """What one finds."""
    text = shear(mesh)
    run(text, tmp_path / "one")

    def body(comm: Comm) -> None:
        run(text, tmp_path / "two", comm=comm)

    run_threads(2, body)
    for name in ("history.csv", "wall_ymax.csv"):
        one, two = table(tmp_path / "one" / name), table(tmp_path / "two" / name)
        assert list(one) == list(two)
        for column in set(one) - {"imbalance", "iterations", "decay"}:
            assert two[column] == pytest.approx(one[column], rel=1e-7, abs=1e-8, nan_ok=True), (name, column)


RING = """
[case]
name = "ring"
solver = "{solver}"
[mesh]
file = "{file}"
[fluid]
viscosity = 0.1
[initial]
velocity_x = "-y / 3 * (4 / (x**2 + y**2) - 1)"
velocity_y = "x / 3 * (4 / (x**2 + y**2) - 1)"
[boundary.inner]
type = "wall"
velocity_x = "-y"
velocity_y = "x"
[boundary.outer]
type = "wall"
[forces.inner]
[forces.outer]
[walls.both]
patches = ["inner", "outer"]
{balance}
[history]
every = 1
[run]
iterations = 40
threads = 1
"""


@pytest.mark.parametrize(
    ("solver", "triangles", "steps", "close"),
    [
        pytest.param("incompressible", False, 400, 0.01, marks=pytest.mark.long),
        ("incompressible", True, 800, 0.01),
        ("edge_flow", True, 40, 0.01),
    ],
)
def test_torque_between_cylinders(solver: str, triangles: bool, steps: int, close: float, tmp_path: Path) -> None:
    """Taylor and Couette's: ``4 pi nu R1^2 R2^2 (w1 - w2) / (R2^2 - R1^2)``, on the inner one against its turning."""
    ring(tmp_path / "ring.su2", 6, 36, triangles)
    balance = '[forces.held]\npatches = ["inner"]\nform = "balance"\n' if solver == "incompressible" else ""
    made = run(RING.format(solver=solver, file=tmp_path / "ring.su2", balance=balance), tmp_path, steps)
    found = table(tmp_path / "history.csv")
    wall = table(tmp_path / "wall_both.csv")
    assert np.array_equal(wall["moves"], np.hypot(wall["x"], wall["y"]) < 1.5)
    assert "both, moving wall: separation" in dict(made.summary())
    if balance:  # 5/8 of it without the transposed gradient, which turns the cylinder and pushes it nowhere
        assert found["held.moment_z"][-1] == pytest.approx(found["inner.moment_z"][-1], rel=0.01)
        assert found["held.force_x"][-1] == pytest.approx(0.0, abs=1e-6)
    wanted = 4 * np.pi * 0.1 * 4 / 3
    assert found["inner.moment_z"][-1] == pytest.approx(-wanted, rel=close)
    assert found["outer.moment_z"][-1] == pytest.approx(wanted, rel=close)
    assert found["inner.force_x"][-1] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("stress", ["", "auto", "full"])
def test_torque_where_the_viscosity_differs(stress: str, tmp_path: Path) -> None:
    """``nu = r / 10``: the speed of turning falls as ``1 / r^3``, and what one cylinder bears the other does."""
    ring(tmp_path / "ring.su2", 8, 48, bool(stress))
    solver, balance = ("edge_flow", f'[scheme]\nstress = "{stress}"') if stress else ("incompressible", "")
    text = RING.format(solver=solver, file=tmp_path / "ring.su2", balance=balance)
    text = text.replace("viscosity = 0.1", 'viscosity = "sqrt(x**2 + y**2) / 10"').replace("every = 1\n", "every = 9\n")
    text = text.replace("/ 3 * (4 / (x**2 + y**2) - 1)", "* 8 / 7 * ((x**2 + y**2)**(-1.5) - 1 / 8)")
    run(text, tmp_path, 400 if stress else 1600)
    found, wanted = table(tmp_path / "history.csv"), 0.2 * np.pi * 24 / 7
    assert found["inner.moment_z"][-1] == pytest.approx(-wanted, rel=0.015)
    assert found["outer.moment_z"][-1] == pytest.approx(wanted, rel=0.015)
    assert found["kinetic_energy"][-1] == pytest.approx(found["kinetic_energy"][0], rel=0.03)


def test_samples_over_a_restart(tmp_path: Path) -> None:
    """The samples of forces go on, and the history, as if there had been no end."""
    text = shear("triangles").replace("every = 1", "every = 3") + '[checkpoint]\nresume = true\n'
    whole = leg(text, tmp_path / "whole", 8)
    leg(text, tmp_path / "parts", 4)
    parts = leg(text, tmp_path / "parts", 8)
    assert parts.tables["history.csv"] == whole.tables["history.csv"]
    assert parts.resumed is not None


GAS = """
[case]
name = "gas"
solver = "compressible"
[gas]
constant = 1.0
viscosity = {{ type = "constant", mu = 0.01 }}
[flow]
pressure = 1.0
temperature = 1.0
{flow}
[mesh]
nx = 3
ny = 6
{mesh}
[initial]
{initial}
[boundary.xmin]
type = "{xmin}"
[boundary.xmax]
type = "{xmax}"
[boundary.ymin]
type = "{wall}"
{low}
[boundary.ymax]
type = "{wall}"
{high}
{ends}
[patch_flow.xmax]
[patch_flow.ymin]
[walls.ymin]
{walls}
[history]
every = 1
[time]
integrator = "explicit"
end = 1e-5
[run]
iterations = 1
threads = 1
"""


@pytest.mark.parametrize("kind", ["quad", pytest.param("triangle", marks=pytest.mark.long)])
def test_heat_between_plates(kind: str, tmp_path: Path) -> None:
    """Gas at rest between a cold and a warm plate: the Nusselt number is 1, heat comes out of the warm one."""
    heat = 0.01 * 1.4 / (0.4 * 0.72) * 0.1
    run(GAS.format(
        flow="", mesh=f'kind = "{kind}"', initial='density = "1 / (1 + 0.1 * y)"', xmin="slip", xmax="slip",
        wall="wall", low="temperature = 1.0", high="temperature = 1.1", ends="",
        walls="length = 1.0\ndifference = -0.1",
    ), tmp_path, 1)  # fmt: skip
    wall, found = table(tmp_path / "wall_ymin.csv"), table(tmp_path / "history.csv")
    close = 2e-3 if kind == "quad" else 0.05
    assert wall["heat_flux"] == pytest.approx(heat, rel=close)
    assert wall["nusselt"] == pytest.approx(1.0, rel=close)
    assert wall["T"] == pytest.approx(1.0, rel=1e-6)
    assert found["ymin.heat"][-1] == pytest.approx(heat, rel=close)
    assert found["ymin.flow"][-1] == 0.0
    assert found["ymin.T"][-1] == pytest.approx(1.0, rel=1e-6)


def test_gas_through_a_patch(tmp_path: Path) -> None:
    """Uniform flow in tetrahedra: mass, total pressure and energy are those of the free stream."""
    run(GAS.format(
        flow="mach = 0.5", mesh='nz = 2\nz = [0.0, 0.5]\nkind = "tetra"', initial="", xmin="far-field",
        xmax="far-field", wall="slip", low="", high="",
        ends='[boundary.zmin]\ntype = "slip"\n[boundary.zmax]\ntype = "slip"', walls="",
    ), tmp_path, 1)  # fmt: skip
    found = {name: values[-1] for name, values in table(tmp_path / "history.csv").items()}
    speed, total = 0.5 * 1.4**0.5, (1 + 0.2 * 0.25) ** 3.5
    assert found["xmax.flow"] == pytest.approx(0.5 * speed, rel=1e-6)
    assert found["xmax.p"] == pytest.approx(1.0, rel=1e-6)
    assert found["xmax.total_pressure"] == pytest.approx(total, rel=1e-6)
    assert found["xmax.heat"] == pytest.approx(0.5 * speed * (3.5 + 0.5 * speed**2), rel=1e-6)
    wall = table(tmp_path / "wall_ymin.csv")
    assert wall["cp"] == pytest.approx(0.0, abs=1e-6)
    assert wall["area"].sum() == pytest.approx(0.5)


SCALAR = """
[scalar.warmth]
diffusivity = 0.2
initial = "y"
[scalar.warmth.boundary.xmin]
type = "value"
value = "y"
[scalar.warmth.boundary.xmax]
type = "outflow"
[scalar.warmth.boundary.ymin]
type = "value"
value = "0"
[scalar.warmth.boundary.ymax]
type = "value"
value = "1"
[scalar.warmth.boundary.zmin]
type = "symmetry"
[scalar.warmth.boundary.zmax]
type = "symmetry"
"""


@pytest.mark.parametrize("mesh", ["bricks", "tetrahedra"])
def test_scalar_through_walls(mesh: str, tmp_path: Path) -> None:
    """A scalar that is linear across the flow: its flux into the wall, the Nusselt number, the mean."""
    text = shear(mesh).replace("[patch_flow.xmin]", "[patch_flow.xmin]\n[patch_flow.ymin]")
    heat = '[walls.ymin]\nlength = 1.0\ndifference = -1.0\nscalar = "warmth"\n'
    run(text + SCALAR + heat, tmp_path)
    wall, found = table(tmp_path / "wall_ymin.csv"), table(tmp_path / "history.csv")
    assert wall["warmth_flux"] == pytest.approx(0.2, rel=1e-7)
    assert wall["nusselt"] == pytest.approx(1.0, rel=1e-7)
    assert found["ymin.warmth_flux"][-1] == pytest.approx(0.1, rel=1e-7)
    assert found["ymin.warmth"][-1] == pytest.approx(0.0, abs=1e-9)
    assert found["xmin.warmth"][-1] == pytest.approx(0.5, rel=1e-2)
    with pytest.raises(CaseError, match=r"walls\.ymin: scalar: there is no scalar 'warmt'; did you mean 'warmth'"):
        built(text + SCALAR + heat.replace('"warmth"', '"warmt"'))
    alone = heat.replace('scalar = "warmth"\n', "")
    with pytest.raises(CaseError, match=r'walls\.ymin: Nusselt number: .*give scalar = "NAME".*\(scalars: warmth\)'):
        built(text + SCALAR + alone)
    with pytest.raises(CaseError, match=r'walls\.ymin: Nusselt number: .*give scalar = "NAME".*\(scalars: none\)'):
        built(text + alone)
    run(text + SCALAR.replace("warmth", "temperature") + alone, tmp_path / "named")
    assert table(tmp_path / "named" / "wall_ymin.csv")["nusselt"] == pytest.approx(1.0, rel=1e-7)


AIRFOIL = """
[case]
name = "airfoil"
solver = "airfoil"
[mesh]
i = 24
j = 12
[forces.wall]
[walls.wall]
[history]
every = 20
[run]
iterations = 40
threads = 1
"""


def test_wall_of_the_airfoil(tmp_path: Path) -> None:
    """No force of uniform flow; later no lift, for the section is symmetric; the pressures add up to the force."""
    run(AIRFOIL, tmp_path, 40)
    found, wall = table(tmp_path / "history.csv"), table(tmp_path / "wall_wall.csv")
    for column in ("wall.force_x", "wall.force_y", "wall.moment_z"):
        assert found[column][0] == pytest.approx(0.0, abs=1e-14)
    assert abs(found["wall.drag"][-1]) > 1e-3
    assert abs(found["wall.lift"][-1]) < 0.1 * abs(found["wall.drag"][-1])
    pushed = ((wall["p"] - 1.0) * wall["area"]) @ wall["nx"]
    assert found["wall.force_x"][-1] == pytest.approx(pushed, rel=1e-7)
    assert wall["cp"] == pytest.approx((wall["p"] - 1.0) / (0.7 * 0.16), rel=1e-5)

    def body(comm: Comm) -> None:
        run(AIRFOIL, tmp_path / "two", 40, comm)

    run_threads(2, body)
    assert table(tmp_path / "two" / "wall_wall.csv")["p"] == pytest.approx(wall["p"], rel=1e-9)
    two = table(tmp_path / "two" / "history.csv")
    assert two["wall.drag"] == pytest.approx(found["wall.drag"], rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("case", ["triangles", "edges of triangles", "airfoil"])
def test_the_reference_agrees(case: str) -> None:
    text = AIRFOIL if case == "airfoil" else shear(case).replace("nx = 4\nny = 5", "nx = 2\nny = 2")
    text = text.replace("i = 24\nj = 12", "i = 6\nj = 4")
    found = []
    for one in ("cpu", "reference"):
        made = built(text, device=one)
        made.advance()
        found.append(np.array([value for name, value in made.columns().items() if "." in name]))
    assert found[1] == pytest.approx(found[0], rel=1e-9, abs=1e-10)
    assert np.abs(found[0]).max() > 0.01


def test_refused() -> None:
    """What does not fit is told with its table."""
    text = shear("triangles")
    for old, new, told in (
        ("[forces.ymax]", "[forces.ymx]", "forces.ymx: no patch 'ymx'; did you mean 'ymax'?"),
        ("point = [0.0, 1.0]", "point = [0.0]", "forces.about: point: 2 coordinates are wanted, not"),
        ("[patch_flow.xmin]", "[patch_flow.xmn]", "patch_flow.xmn: no patch 'xmn'; did you mean 'xmin'?"),
        ("[walls.ymax]", "[walls.ymax]\ncuts = [0.5]", "walls.ymax: cuts: the mesh has 2 dimensions"),
        ("[walls.ymax]", '[walls.ymax]\naxis = "x"', "axis is there but cuts is not"),
        ("[walls.ymax]", "[walls.ymax]\nlength = 1.0", "a Nusselt number needs length and difference"),
        ("area = 0.5\n", "", "forces.ymax: give both of speed and area"),
        ("point = [0.0, 1.0]", "length = 2.0", "forces.about: length is there but speed and area are not"),
        ("length = 0.25", "drag = [0, 0]", "forces.ymax: forces: reference: drag: a direction of 2 components"),
        ("length = 0.25", "drag = [0, 1]", "forces.ymax: forces: reference: pitch"),
    ):
        assert old in text
        with pytest.raises(CaseError) as caught:
            built(text.replace(old, new))
        assert told in str(caught.value)
    with pytest.raises(CaseError, match=r"forces\.ymax\.form: this solver finds forces in one way"):
        built(shear("staggered").replace("length = 0.25", 'form = "balance"'))
    with pytest.raises(SolverError, match="area: a positive number"):
        Reference(1.0, area=0.0)
    with pytest.raises(SolverError, match="nothing has been found yet"):
        _ = Forces("wing").force


def test_forms_of_forces(tmp_path: Path) -> None:
    """Both forms of finite volumes; on all sides the balance is what the momentum loses: nothing, but the inflow."""
    names = 'patches = ["xmin", "xmax", "ymin", "ymax"]'
    text = shear("triangles") + f'[forces.all]\n{names}\nform = "balance"\n[forces.surface]\n{names}\n'
    run(text, tmp_path)
    found = {name: values[-1] for name, values in table(tmp_path / "history.csv").items()}
    assert found["all.force_x"] == pytest.approx(0.0, abs=1e-8)
    assert found["surface.force_x"] == pytest.approx(0.0, abs=1e-8)


def test_script(tmp_path: Path) -> None:
    """Monitors of a script find what those of the case file do."""
    run(shear("tetrahedra"), tmp_path)
    case = table(tmp_path / "history.csv")
    flow = built(shear("tetrahedra").partition("[forces.ymax]")[0] + "[run]\niterations = 2\nthreads = 1\n").flow
    wing = fl.Forces("ymax", reference=fl.Reference(2.0, area=0.5, length=0.25))
    result = fl.run(flow, fl.Steps(2), [fl.History(1), wing, fl.PatchFlow("xmin"), fl.Walls("ymax")])
    assert result.forces["ymax"].cd == pytest.approx(case["ymax.drag"][-1], rel=1e-11)
    assert result.forces["ymax"].cm == pytest.approx(case["ymax.pitch"][-1], rel=1e-11)
    assert result.history["xmin.flow"] == pytest.approx(case["xmin.flow"], rel=1e-11)
    assert "ymax, y+" in dict(result.summary)


def test_half_a_channel(tmp_path: Path) -> None:
    """Poiseuille's flow: the wall of half the channel, to its plane of symmetry, bears what that of the whole does."""
    text = shear("triangles").replace('"y"', '"4 * y * (1 - y)"').replace("velocity = [1.0, 0.0]", "")
    text = text.replace("nx = 4\nny = 5", "nx = 4\nny = 6") + "[forces.ymin]\nspeed = 1.0\narea = 1.0\n"
    half = text.replace("ny = 6", "ny = 3\ny = [0.0, 0.5]")
    half = half.replace('[boundary.ymax]\ntype = "wall"', '[boundary.ymax]\ntype = "symmetry"')
    run(text, tmp_path / "whole")
    run(half, tmp_path / "half")
    whole, one = (table(tmp_path / name / "history.csv") for name in ("whole", "half"))
    assert one["ymin.drag"] == pytest.approx(whole["ymin.drag"], rel=1e-6)
    assert one["ymin.drag"][-1] == pytest.approx(0.8, rel=0.1)
    assert 2.0 * one["xmin.flow"] == pytest.approx(whole["xmin.flow"], rel=1e-9)


CAVITY = """
[case]
name = "heated"
solver = "incompressible"
[mesh]
nx = 24
ny = 24
[fluid]
viscosity = 0.008426149773176358
gravity = [0.0, -1.0]
[scalar.T]
diffusivity = 0.011867816581938534
initial = "0.5 - x"
expansion = 1.0
[scalar.T.boundary]
xmin = { type = "value", value = "0.5" }
xmax = { type = "value", value = "-0.5" }
ymin = { type = "adiabatic" }
ymax = { type = "adiabatic" }
[boundary]
xmin = { type = "wall" }
xmax = { type = "wall" }
ymin = { type = "wall" }
ymax = { type = "wall" }
[walls.xmin]
length = 1.0
difference = 1.0
scalar = "T"
[time]
end = 60.0
[run]
iterations = 20000
threads = 1
"""


@pytest.mark.long
def test_nusselt_number_of_the_heated_cavity(tmp_path: Path) -> None:
    """Of Rayleigh number 10^4: G. de Vahl Davis (1983) has 2.243; the error falls with the square of the cells."""
    made = built(CAVITY)
    made.begin(ResultFolder(tmp_path))
    while not made.finished:
        made.advance()
    made.finish(pictures=False)
    wall = table(tmp_path / "wall_xmin.csv")
    assert wall["nusselt"] @ wall["area"] == pytest.approx(2.243, rel=0.02)
