"""Lattice Boltzmann flow whose walls, openings and acceleration change in time, against exact solutions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.cases.lattice.advice import advices
from fluxloom.cases.lattice.case import LatticeApplication
from fluxloom.cases.lattice.tables import LatticeCase, units_of
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.flows.lattice.given.bodies import Body, Floating
from fluxloom.flows.lattice.given.numerics import Numerics
from fluxloom.flows.lattice.given.shapes import Ball
from fluxloom.flows.lattice.given.sides import Inflow, NoSlip, PressureSide
from fluxloom.flows.lattice.given.start import Start
from fluxloom.flows.lattice.given.units import Units
from fluxloom.lbm.boundaries import BounceBack, RegularisedCells, ZouHe
from fluxloom.lbm.streaming.schemes import InPlace, Pull

Array = npt.NDArray[np.float64]

NU, OMEGA, GRADIENT = 0.05, 2.0 * np.pi, 1.5
K = np.sqrt(1j * OMEGA / NU)


def womersley(y: Array, t: float) -> Array:
    """Return the velocity between walls at 0 and 1 that the acceleration ``GRADIENT cos(OMEGA t)`` drives."""
    shape = 1.0 - np.cosh(K * (y - 0.5)) / np.cosh(0.5 * K)
    return np.real(GRADIENT / (1j * OMEGA) * shape * np.exp(1j * OMEGA * t))


def stokes(y: Array, t: float) -> Array:
    """Return the velocity between a wall at rest at 0 and one at 1 that goes with ``0.3 cos(OMEGA t)``."""
    return np.real(0.3 * np.sinh(K * y) / np.sinh(K) * np.exp(1j * OMEGA * t))


def field(exact: Callable[[Array, float], Array]) -> Callable[[Array, float], Array]:
    """Return a flow along x as a function of places and times."""
    return lambda at, t: np.stack([exact(at[:, 1], t), *(np.zeros(len(at)) for _ in at.T[1:])], axis=1)


def start(exact: Callable[[Array, float], Array], pressure: Any = 0.0) -> Start:
    return Start(lambda at: field(exact)(at, 0.0), pressure)


WALLS = {"ymin": NoSlip(), "ymax": NoSlip()}
DRIVEN = f"{GRADIENT} * cos({OMEGA} * t)"
CASES: dict[str, dict[str, Any]] = {
    "acceleration": {"force": (DRIVEN, 0.0), "start": start(womersley)},
    "acceleration in space": {"force": (f"where(x < 9, 1, 0) * {DRIVEN}", 0.0), "start": start(womersley)},
    "wall": {
        "boundaries": {"ymin": NoSlip(), "ymax": NoSlip((f"0.3 * cos({OMEGA} * t)", 0.0))}, "start": start(stokes),
    },
    "pressures": {
        "boundaries": WALLS | {
            "xmin": PressureSide(f"(0.5 - x) * {DRIVEN}", RegularisedCells()),  # x: it is set at the centres of cells
            "xmax": PressureSide(f"(0.5 - x) * {DRIVEN}", ZouHe()),
        },
        "start": start(womersley, f"{GRADIENT} * (0.5 - x)"),
    },
    "inflow": {
        "boundaries": WALLS | {
            "xmin": Inflow(field(womersley)), "xmax": PressureSide(0.0, RegularisedCells()),
        },
        "start": start(womersley, f"{GRADIENT} * (0.5 - x)"),
    },
    "inflow by links": {
        "boundaries": WALLS | {
            "xmin": Inflow(field(womersley), BounceBack()), "xmax": PressureSide(0.0, RegularisedCells()),
        },
        "start": start(womersley, f"{GRADIENT} * (0.5 - x)"),
    },
}  # fmt: skip


def error(name: str, n: int, streaming: Any = None) -> float:
    """Return the largest error of the velocity after a third of a period, over the largest velocity."""
    case = {"boundaries": WALLS} | CASES[name]
    units = Units.of(1.0 / n, viscosity=NU, velocity=0.3, dt=0.16 / n**2)
    flow = fl.Lattice(
        (n // 2 if "xmin" in case["boundaries"] else 2, n), units, Context("cpu", threads=1, tuning=False),
        numerics=Numerics(precision="float64", streaming=streaming or Pull()), residual_interval=20, **case,
    )  # fmt: skip
    fl.run(flow, fl.Time(1.0 / 3.0))
    exact = stokes if name == "wall" else womersley
    y = (np.arange(n) + 0.5) / n
    u = flow.solver.velocity()[:, flow.solver.box.shape[1] // 2, 1] * units.speed
    assert flow.time == pytest.approx(1.0 / 3.0, abs=units.dt)
    wanted = exact(y, flow.time)
    return float(np.abs(u - wanted).max() / np.abs(wanted).max())


@pytest.mark.parametrize("name", CASES)
def test_second_order(name: str) -> None:
    """With steps that are four times as short in cells half as large the error is a fourth."""
    streaming = InPlace() if name in ("wall", "inflow") else Pull()
    coarse, fine = error(name, 10, streaming), error(name, 20, streaming)
    assert fine < 0.02
    assert coarse / fine > 3.2


# ---------------------------------------------------------------------------------- what gives the values

CHANNEL: dict[str, Any] = {
    "case": {"name": "pulse", "solver": "lattice"}, "run": {"iterations": 30},
    "mesh": {"nx": 16, "ny": 8, "length": 2.0}, "fluid": {"reynolds": 20, "force": ["0.1 * sin(9 * t)", 0.0]},
    "lattice": {"precision": "float64"}, "time": {"residual_interval": 5},
    "boundary": {
        "xmin": {"type": "velocity", "velocity": ["4 * y * (1 - y) * (1 + 0.3 * sin(9 * t))", 0.0]},
        "xmax": {"type": "pressure", "scheme": "regularised", "pressure": "0.01 * sin(5 * t)"},
        "ymin": {"type": "wall"}, "ymax": {"type": "wall", "velocity_x": "0.1 * cos(3 * t)"},
    },
}  # fmt: skip


def load(**changes: Any) -> LatticeCase:
    case, _ = parse_case(Document(Path("case.toml"), CHANNEL | changes, {}))
    assert isinstance(case, LatticeCase)
    return case


def advanced(comm: Comm, case: LatticeCase, steps: int = 12) -> dict[str, Array]:
    """Return the fields of all ranks after some steps."""
    run = LatticeApplication().build(case, Context("cpu", threads=1, tuning=False, comm=comm))
    for _ in range(steps):
        run.advance()
    from fluxloom.run.flow_run import gathered

    return dict(gathered(comm, run.flow.part, run.fields()))


def test_all_ways_to_say_a_value() -> None:
    """Formulas that loops compute, functions that the host calls, a table of times: the same; on two ranks too."""
    case = load()
    wanted = run_threads(1, advanced, case)[0]
    assert np.ptp(wanted["u"]) > 0.1
    for name, values in run_threads(2, advanced, case)[0].items():
        np.testing.assert_allclose(values, wanted[name], rtol=0, atol=1e-12, err_msg=name)
    units = units_of(case)

    def inflow(at: Array, t: float) -> Array:
        y = at[:, 1]
        return np.stack([4 * y * (1 - y) * (1 + 0.3 * np.sin(9 * t)), np.zeros(len(y))], axis=1)

    flow = fl.Lattice(
        (16, 8), units, Context("cpu", threads=1, tuning=False), numerics=Numerics(precision="float64"),
        residual_interval=5,
        boundaries={
            "xmin": Inflow(inflow), "xmax": PressureSide(lambda at, t: 0.01 * np.sin(5 * t) + 0 * at[:, 0], ZouHe()),
            "ymin": NoSlip(), "ymax": NoSlip(lambda at, t: np.array([0.1 * np.cos(3 * t), 0.0])),
        },
        force=(lambda at, t: 0.1 * np.sin(9 * t) + 0 * at[:, 0], 0.0),
    )  # fmt: skip
    flow.solver.step(0)
    other = load(boundary=CHANNEL["boundary"] | {"xmax": CHANNEL["boundary"]["xmax"] | {"scheme": "zou-he"}})
    wanted = run_threads(1, advanced, other)[0]
    until = fl.Steps(12)
    for _ in range(12):
        flow.advance(until)
    for name, values in flow.fields().items():
        np.testing.assert_allclose(values, wanted[name], rtol=0, atol=1e-12, err_msg=name)


def test_a_series(tmp_path: Path) -> None:
    """Of a file: as the formula through the same points."""
    (tmp_path / "u.csv").write_text("t,u\n0,0\n10,2\n")
    series = {"type": "series", "file": str(tmp_path / "u.csv")}
    sides = {key: table for key, table in CHANNEL["boundary"].items() if key.startswith("y")}
    found = [
        run_threads(1, advanced, load(boundary=sides | {
            "xmin": {"type": "velocity", "velocity": [given, 0.0]}, "xmax": {"type": "outflow"},
        }))[0]["u"]
        for given in (series, "0.2 * t")
    ]  # fmt: skip
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-13)
    assert found[0].max() > 1e-3


def test_steps_two_at_a_time_or_one() -> None:
    """Values are those of each step, however many are asked for."""
    case, context = load(), Context("cpu", threads=1, tuning=False)
    one, other = (LatticeApplication().build(case, context).flow for _ in range(2))
    for flow in (one, other):
        flow._force.values = ()  # the solver does not know of it
    one.solver.step(7)
    for _ in range(7):
        other.solver.step()
    np.testing.assert_array_equal(one.solver.velocity(), other.solver.velocity())


# ------------------------------------------------------------------------------------------ what is wrong


def test_what_goes_wrong_on_the_way() -> None:
    """Is told with its name and the time, at the next look."""
    walls = {key: CHANNEL["boundary"][key] for key in ("ymin", "ymax")}
    bad = {
        "xmin": {"type": "velocity", "velocity": ["where(t > 0.01, 0 / 0, 0.1 * y)", 0.0]}, "xmax": {"type": "outflow"},
    }  # fmt: skip
    with pytest.raises((SolverError, CaseError), match=r"boundary\.xmin: .*where"):
        run_threads(1, advanced, load(boundary=walls | bad))
    crossing = {"ymax": {"type": "wall", "velocity": [0.0, "0.1 * sin(9 * t)"]}, "ymin": {"type": "wall"}}
    with pytest.raises(SolverError, match=r"ymax: the wall has a velocity of .* across itself"):
        run_threads(1, advanced, load(boundary=crossing))


def test_what_is_refused() -> None:
    """Unknown names, forces of place beside immersed bodies, another value of what changes by itself."""
    with pytest.raises(CaseError, match="unknown name 'r'"):
        load(boundary=CHANNEL["boundary"] | {"ymin": {"type": "wall", "velocity": ["r", 0.0]}})
    with pytest.raises(CaseError, match=r"initial.*unknown name 't'"):
        load(initial={"pressure": "t"})
    flow = LatticeApplication().build(load(), Context("reference")).flow
    for name in ("xmin", "xmax", "ymax"):
        with pytest.raises(SolverError, match="change in time by themselves"):
            flow.solver.assign(name, 0.0)
    ball = Body(Ball((0.5, 0.5), 0.3), "immersed", motion=Floating(2.0))
    units = Units.of(0.05, viscosity=0.1)
    with pytest.raises(SolverError, match=r"fluid\.force: with immersed bodies it is the same everywhere"):
        fl.Lattice((20, 20), units, Context("reference"), bodies={"ball": ball}, force=("x", 0.0),
                   numerics=Numerics(streaming=InPlace()))  # fmt: skip


def test_check_looks_at_the_fastest_moment() -> None:
    """A velocity that grows until the end is too fast for the lattice: it is said before."""
    side = {"type": "velocity", "velocity": ["0.5 + 2 * t", 0.0]}
    sides = CHANNEL["boundary"] | {"xmin": side}
    for end, said in ((1.0, True), (0.1, False)):
        case = load(boundary=sides, time={"end": end})
        assert ("Mach number" in "\n".join(advices(case, units_of(case)))) == said


@pytest.mark.parametrize("d", [2, 3])
def test_surfaces_of_bodies(d: int) -> None:
    """A spin and a velocity that change, as formulas and as a function of places and time; a spin that does not."""

    def moved(velocity: Any, spin: Any) -> dict[str, Array]:
        body = Body(Ball((0.52, 0.45, 0.4)[:d], 0.5), velocity=velocity, spin=spin)
        flow = fl.Lattice(
            (10, 9, 8)[:d], Units.of(0.1, viscosity=0.05, lower=(0.0,) * d), Context("cpu", threads=1, tuning=False),
            bodies={"ball": body}, numerics=Numerics(precision="float64"),
        )  # fmt: skip
        for _ in range(9):
            flow.advance(fl.Steps(9))
        return {name: values.copy() for name, values in flow.fields().items()}

    if d == 2:
        spin, same = (lambda t: f"0.5 * sin({t})",), (0.5,)
        turned = ("-0.5 * sin(9*t) * (y - 0.45)", "0.5 * sin(9*t) * (x - 0.52) + 0.1*cos(t)")
    else:
        spin, same = (lambda t: "0.2", lambda t: f"0.5 * sin({t})", lambda t: f"cos({t})"), (0.2, 0.5, 1.0)
        turned = (
            "0.5 * sin(9*t) * (z - 0.4) - cos(9*t) * (y - 0.45)",
            "cos(9*t) * (x - 0.52) - 0.2 * (z - 0.4) + 0.1*cos(t)",
            "0.2 * (y - 0.45) - 0.5 * sin(9*t) * (x - 0.52)",
        )
    one = moved((0.0, "0.1*cos(t)", 0.0)[:d], tuple(rate("9*t") for rate in spin))
    other = moved(turned, ())
    assert np.ptp(one["u"]) > 1e-3
    for name, values in one.items():
        np.testing.assert_allclose(values, other[name], rtol=0, atol=1e-13, err_msg=name)
    still, given = moved((), same), moved((), tuple(f"{rate} + 0*t" for rate in same))
    for name, values in still.items():
        np.testing.assert_allclose(values, given[name], rtol=0, atol=1e-13, err_msg=name)
