"""Guards of sanity: each finds what it is for, with field, place and step, and leaves flows that are right alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.core.errors import CaseError, Divergence
from fluxloom.dsl.context import Context
from fluxloom.mesh import MeshData, box2d
from fluxloom.run.checkpoint import RunCheckpoint
from fluxloom.run.flow import Flow, Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.guards import Guards, Violation
from fluxloom.run.results.results import ResultFolder
from fluxloom.run.watch import Balance, Clipped, Numbers, Watch

HEAD = '[case]\nname = "guarded"\nsolver = "{}"\n[run]\niterations = {}\nthreads = 1\n'

BOX = """
[mesh]
nx = {n}
ny = {n}
"""

PULSE = HEAD.format("compressible", 400) + """
[mesh]
x = [-0.5, 0.5]
y = [-0.5, 0.5]
nx = 20
ny = 20
[gas]
constant = 1.0
[initial]
density = "1 + 0.1 * exp(-60 * (x**2 + y**2))"
pressure = "1 + 0.1 * exp(-60 * (x**2 + y**2))"
[boundary.xmin]
type = "slip"
[boundary.xmax]
type = "slip"
[boundary.ymin]
type = "slip"
[boundary.ymax]
type = "slip"
[scheme]
flux = "FLUX"
[time]
end = 0.6
"""

VACUUM = HEAD.format("compressible", 200) + """
[mesh]
x = [0.0, 1.0]
y = [0.0, 0.01]
nx = 100
ny = 1
[gas]
constant = 1.0
[initial]
left = [1.0, -SPEED, 0.0, 0.4]
right = [1.0, SPEED, 0.0, 0.4]
at = 0.5
[boundary.xmin]
type = "supersonic-outlet"
[boundary.xmax]
type = "supersonic-outlet"
[boundary.ymin]
type = "symmetry"
[boundary.ymax]
type = "symmetry"
[scheme]
flux = "FLUX"
limiter = "barth-jespersen"
[time]
end = 0.1
cfl = 0.5
"""

SHOCK = HEAD.format("compressible", 150) + BOX.format(n=16) + """
[flow]
mach = 2.0
[boundary.xmin]
type = "supersonic-inlet"
[boundary.xmax]
type = "supersonic-outlet"
[boundary.ymin]
type = "slip"
[boundary.ymax]
type = "slip"
[initial]
left = [1, 0, 0, 1e5]
right = [0.1, 0, 0, 1e3]
at = 0.5
[time]
cfl = 20.0
"""

WALLS = "".join(f'[boundary.{side}]\ntype = "wall"\n' for side in ("xmin", "xmax", "ymin"))
LID = WALLS + '[boundary.ymax]\ntype = "wall"\nvelocity = [1.0, 0.0]\n'
CAVITY = HEAD.format("incompressible", 60) + BOX.format(n=12) + "[fluid]\nviscosity = 0.01\n[time]\ndt = 0.02\n" + LID

TRANSPORT = HEAD.format("edge_transport", 200) + """
[mesh]
kind = "triangle"
nx = 16
ny = 16
[transport]
diffusivity = 1e-3
velocity_x = "-(y - 0.5)"
velocity_y = "x - 0.5"
[boundary.xmin]
type = "given"
value = 0.0
[boundary.xmax]
type = "given"
value = 0.0
[boundary.ymin]
type = "given"
value = 0.0
[boundary.ymax]
type = "given"
value = 0.0
[initial]
scalar = "exp(-40 * ((x - 0.7)**2 + (y - 0.5)**2))"
[time]
dt = 0.05
"""

LATTICE = HEAD.format("lattice", 300) + BOX.format(n=24) + """
[fluid]
viscosity = 0.1
[reference]
length = 24.0
[time]
lattice_velocity = 0.1
""" + LID


class Run:
    """A case that runs under its guards, as the command line runs it."""

    def __init__(self, folder: Path, text: str, *, device: str = "cpu") -> None:
        path = folder / "case.toml"
        path.write_text(text, encoding="utf-8")
        case, application = load_case(path)
        context = Context(device, threads=1, tuning=False)
        self.runner: Any = application.build(case, context)
        self.runner.begin(ResultFolder(folder))
        self.guards = Guards(case.guards.value, self.runner, context)
        self.guards.begin()
        self.limit = case.run.iterations

    def go(self) -> Violation | None:
        """Return what ended it; None: it came to its end."""
        step = 0
        for step in range(1, self.limit + 1):
            try:
                self.runner.advance()
            except Divergence as error:
                return self.guards.caught(error, step, None)
            found = self.guards.stepped(step, None, self.runner.residual())
            if found is not None:
                return found
            if self.runner.finished:
                break
        return self.guards.look(step, None, last=True)


# ------------------------------------------------------------------------------------------------ compressible


def test_mass_that_appears_in_a_closed_box(tmp_path: Path) -> None:
    run = Run(tmp_path, PULSE.replace("FLUX", "hllc"))
    states = run.runner.flow.solver.w.read()
    states[77, 0] *= 1.2
    run.runner.flow.solver.w.write(states)
    found = run.go()
    assert found is not None
    assert found.guard == "balance"
    assert found.value > 1.0
    assert found.since == 0
    assert found.step <= 50
    assert "total mass" in found.message
    assert "appeared" in found.message
    assert "time.cfl" in found.message
    error = found.error()
    assert isinstance(error, Divergence)
    assert error.number == found.number


@pytest.mark.parametrize("flux", ["hllc", "ausm+-up"])
def test_mass_stays_in_a_closed_box(tmp_path: Path, flux: str) -> None:
    run = Run(tmp_path, PULSE.replace("FLUX", flux))
    assert run.go() is None
    assert "limited" not in run.runner.fields()
    numbers = run.guards.record()["numbers"]
    assert numbers["mass"] == pytest.approx(1.00524, rel=1e-3)
    assert numbers["density"] > 0.9


def test_halves_that_part_lose_no_mass(tmp_path: Path) -> None:
    """Between them is next to nothing: fluxes are limited there, and that is told, with the place."""
    run = Run(tmp_path, VACUUM.replace("FLUX", "roe").replace("SPEED", "2.0"))
    first = run.guards.record()["numbers"]
    assert run.go() is None
    last = run.guards.record()["numbers"]
    assert last["mass"] + last["mass left"] == pytest.approx(first["mass"], rel=1e-12)
    limited = run.runner.fields()["limited"]
    assert limited.argmax() in (48, 49, 50, 51)
    run.runner.finish(pictures=False)
    text = dict(run.runner.summary())["limited"]
    assert "fluxes of" in text
    assert f"most often cell {limited.argmax()} at (0.4" in text.replace("0.5", "0.4")


def test_cells_limited_in_the_last_step_are_named(tmp_path: Path) -> None:
    """They need not be where most was limited."""
    text = VACUUM.replace("FLUX", "roe").replace("SPEED", "2.0")
    run = Run(tmp_path, text.replace("iterations = 200", "iterations = 4"))
    run.go()
    before = run.runner.fields()["limited"]
    run.runner.advance()
    now = np.flatnonzero(run.runner.fields()["limited"] - before)
    assert now.size
    run.runner.finish(pictures=False)
    assert f"{now.size} cells in the last step, as cell {now[0]} at (" in dict(run.runner.summary())["limited"]


def test_what_left_is_what_is_missing(tmp_path: Path) -> None:
    run = Run(tmp_path, VACUUM.replace("FLUX", "hllc").replace("SPEED", "0.5"))
    first = run.guards.record()["numbers"]
    assert run.go() is None
    last = run.guards.record()["numbers"]
    assert last["mass left"] > 0.05 * first["mass"]
    assert last["mass"] + last["mass left"] == pytest.approx(first["mass"], rel=1e-13)
    assert last["energy"] + last["energy left"] == pytest.approx(first["energy"], rel=1e-13)


def test_a_step_far_too_long_is_named(tmp_path: Path) -> None:
    found = Run(tmp_path, SHOCK + "[guards]\ngrowth = 0\nclipped = 0\nresidual = 0\n").go()
    assert found is not None
    assert found.guard == "courant"
    assert found.value == pytest.approx(25.0)
    assert "time.cfl is 20" in found.message


def test_energy_that_grows_without_bound(tmp_path: Path) -> None:
    run = Run(tmp_path, PULSE.replace("FLUX", "hllc") + "[guards]\nbalance = 0\ngrowth = 2\n")
    states = run.runner.flow.solver.w.read()
    states[:, 3] *= 3.0
    run.runner.flow.solver.w.write(states)
    found = run.go()
    assert found is not None
    assert found.guard == "growth"


def test_a_gas_that_is_lost_is_a_divergence(tmp_path: Path) -> None:
    run = Run(tmp_path, PULSE.replace("FLUX", "hllc"))
    states = run.runner.flow.solver.w.read()
    states[77, 0] = np.nan
    run.runner.flow.solver.w.write(states)
    found = run.go()
    assert found is not None
    assert found.guard == "finite"
    assert "is not finite" in found.message
    assert found.number >= 0
    assert found.step == 1


def test_a_start_without_pressure_is_refused(tmp_path: Path) -> None:
    run = Run(tmp_path, PULSE.replace("FLUX", "hllc"))
    states = run.runner.flow.solver.w.read()
    states[21, 3] = -0.25
    run.runner.flow.solver.w.write(states)
    with pytest.raises(CaseError, match=r"pressure -0.25 in cell 21 at \(-0.425, -0.425\)"):
        run.guards.begin()


def test_a_file_with_nan_is_refused(tmp_path: Path) -> None:
    staggered = CAVITY.replace('"incompressible"', '"staggered"')
    run = Run(tmp_path, staggered)
    u = run.runner.flow.solver.fields.u
    values = u.read()
    values[..., 0] = np.nan
    u.write(values)
    case, _ = load_case(tmp_path / "case.toml")
    RunCheckpoint(case.checkpoint.value, case.model_dump(), run.runner, run.runner.flow.solver.context, tmp_path).save()
    with pytest.raises(CaseError, match=r"checkpoint\.h5: velocity_x is nan at \("):
        Run(tmp_path, staggered + f'[initial]\nfile = "{tmp_path / "checkpoint.h5"}"\n')


def test_eddy_viscosity_of_a_model(tmp_path: Path) -> None:
    text = CAVITY + '[les]\nmodel = "smagorinsky"\n[guards]\nviscosity = 1e-3\n'
    found = Run(tmp_path, text).go()
    assert found is not None
    assert found.guard == "viscosity"
    assert found.limit == pytest.approx(1e-5)


# ------------------------------------------------------------------------------------------ incompressible, edges


def test_a_cavity_is_left_alone(tmp_path: Path) -> None:
    run = Run(tmp_path, CAVITY)
    assert run.go() is None
    assert run.guards.record()["looks"] == 4
    assert "courant" in run.guards.record()["numbers"]


@pytest.mark.parametrize("factor", [10, 100])
def test_a_cavity_with_steps_too_long(tmp_path: Path, factor: int) -> None:
    found = Run(tmp_path, CAVITY.replace("dt = 0.02", f"dt = {0.02 * factor}")).go()
    assert found is not None
    assert found.guard == "finite"
    assert found.number >= 0
    assert len(found.place) == 2
    assert "lower time.dt" in found.message


@pytest.mark.parametrize(("steps", "guard"), [(4, "growth"), (20, "courant")])
def test_a_step_too_long_that_has_not_blown_up_yet(tmp_path: Path, steps: int, guard: str) -> None:
    text = CAVITY.replace("iterations = 60", f"iterations = {steps}")
    if guard == "growth":
        text = text.replace("dt = 0.02", "dt = 0.6")
    else:
        text = text.replace("dt = 0.02", "dt = 0.1") + "[guards]\ngrowth = 0\ncourant = 2.0\n"
    found = Run(tmp_path, text).go()
    assert found is not None
    assert found.guard in (guard, "courant", "finite")


@pytest.mark.parametrize(("dt", "guard"), [("0.6", "scalar"), ("0.8", "scalar")])
def test_a_scalar_beyond_its_range(tmp_path: Path, dt: str, guard: str) -> None:
    found = Run(tmp_path, TRANSPORT.replace("dt = 0.05", f"dt = {dt}")).go()
    assert found is not None
    assert found.guard == guard
    assert found.element == "point"
    assert found.value > 3.0
    assert found.field == "scalar"


def test_a_scalar_in_its_range(tmp_path: Path) -> None:
    assert Run(tmp_path, TRANSPORT).go() is None


# --------------------------------------------------------------------------------------------------- lattices


def test_a_lattice_cavity_is_left_alone(tmp_path: Path) -> None:
    run = Run(tmp_path, LATTICE)
    assert run.go() is None
    numbers = run.guards.record()["numbers"]
    assert 0.5 < numbers["density"] < 1.0
    assert 0.0 < numbers["square"] < 0.02


def test_a_fluid_faster_than_may_be(tmp_path: Path) -> None:
    found = Run(tmp_path, LATTICE + "[guards]\nmach = 0.05\n").go()
    assert found is not None
    assert found.guard == "mach"
    assert found.field == "speed"
    assert found.limit == pytest.approx(0.05 / np.sqrt(3.0))
    assert found.place[1] > 20.0


@pytest.mark.parametrize(("speed", "lost"), [("0.5", False), ("9.0", True)])
def test_a_body_faster_than_sound(tmp_path: Path, speed: str, lost: bool) -> None:
    body = '[body.disk]\nshape = "circle"\ncenter = [12.0, 12.0]\ndiameter = 8.0\ncondition = "immersed"\n'
    motion = f'motion = "prescribed"\nposition_x = "0.2 * sin({speed} * t)"\n'
    text = LATTICE.replace("[boundary.xmin]", body + motion.replace("0.2 *", "1.0 *") + "[boundary.xmin]")
    found = Run(tmp_path, text.replace("iterations = 300", "iterations = 100")).go()
    if lost:
        assert found is not None
        assert found.guard in ("mach", "finite")
    else:
        assert found is None


# ------------------------------------------------------------------------------------------------------ rules


def test_a_balance_counts_what_comes_and_leaves() -> None:
    rule = Balance("volume", "water", 1e-3, "came", "left")
    assert rule.broken(Numbers(0, 0.0, {"volume": 10.0})) is None
    assert rule.broken(Numbers(1, 1.0, {"volume": 12.0, "came": 3.0, "left": 1.0})) is None
    found = rule.broken(Numbers(2, 2.0, {"volume": 11.0, "came": 3.0, "left": 1.0}))
    assert found is not None
    assert "9.09 % of the water vanished" in found.reason


def test_rounding_is_no_loss_where_all_has_come_in() -> None:
    """A run that goes on from a checkpoint begins with what rounding has left of nothing."""
    rule = Balance("volume", "water", 1e-4, "came")
    for volume, came in ((170.0 + 3e-14, 170.0), (180.0 + 6e-14, 180.0)):
        assert rule.broken(Numbers(0, 0.0, {"volume": volume, "came": came})) is None
    assert rule.broken(Numbers(1, 1.0, {"volume": 180.1, "came": 180.0})) is not None


def test_states_may_be_clipped_for_some_steps() -> None:
    counts = [0.0, 0.0]
    rule = Clipped(0.1, 40, lambda: (counts[0], counts[1]))
    verdicts = []
    for step, part in ((0, 0.0), (20, 0.5), (40, 0.05), (60, 0.5), (80, 0.5)):
        counts[0] += 1000.0 * part * (step > 0)
        counts[1] += 1000.0 * (step > 0)
        verdicts.append(rule.broken(Numbers(step, None, {})) is not None)
    assert verdicts == [False, False, False, False, True]


@pytest.mark.parametrize(
    ("line", "words"),
    [("mass = 1", "mass"), ("balance = -1.0", "balance"), ("clipped = 2.0", "clipped"), ("finite = 1", "finite")],
)
def test_wrong_keys_are_refused(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "case.toml"
    path.write_text(CAVITY + f"[guards]\n{line}\n", encoding="utf-8")
    with pytest.raises(CaseError, match=words):
        load_case(path)


class Steady(Flow):
    """A steady flow of made-up residuals."""

    cells = 4

    def __init__(self) -> None:
        self.context = Context("reference")
        self.watched = Watch(10, (), (), steady=True)

    def mesh(self) -> MeshData:
        return box2d(2, 2)

    def watch(self, table: object, until: Until) -> Any:
        return self.watched

    def fields(self) -> dict[str, Any]:
        return {}

    def advice(self) -> str:
        return "lower something"


@pytest.mark.parametrize(
    ("residuals", "step"),
    [
        ([1.0] * 100 + [1e-3, 1e-9, 1e-5, 2e-4, 3e-4, 9e-3], 106),  # above a million times the lowest
        ([1.0] * 100 + [1e-14, 5e-5, 5e-4], 103),  # below 1e-10 of the first it is round-off
        ([1e-17, 1e-3] + [1.0] * 200 + [1e3], 0),  # begins at round-off
    ],
)
def test_a_residual_that_grows_beyond_measure(residuals: list[float], step: int) -> None:
    from fluxloom.run.watch import GuardLimits

    runner = FlowRun(Steady(), "steady", Until())
    guards = Guards(GuardLimits(), runner, Context("reference"))
    guards.begin()
    for number, residual in enumerate(residuals, start=1):
        found = guards.stepped(number, None, residual)
        if found is not None:
            assert number == step
            assert found.guard == "residual"
            assert "lower something" in found.message
            return
    assert not step
