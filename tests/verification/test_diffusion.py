"""Diffusion against exact solutions: order of accuracy, materials in layers, steps in time, and budgets of heat."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import log2, pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.mesh.data.mesh import MeshData

Array = npt.NDArray[np.float64]

EXACT = "exp(x) * sin(y)"
"""With ``k = 1 + x y``, ``f = -div(k grad u)`` below."""
SOURCE = "-(y * exp(x) * sin(y) + x * exp(x) * cos(y))"
ENDS: Mapping[str, Any] = {
    "xmin": EXACT, "ymin": EXACT, "xmax": fl.FixedFlux(f"(1 + x * y) * {EXACT}"),
    "ymax": fl.Convective("2 + x", f"{EXACT} + (1 + x * y) * exp(x) * cos(y) / (2 + x)"),
}  # fmt: skip
TIGHT = fl.Stop(rtol=1e-13, iterations=10_000)


def context() -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False)


def box(kind: str, n: int) -> MeshData:
    if kind in ("triangle", "quad"):
        return fl.mesh.box2d(n, n, kind=kind, perturb=0.2)
    return fl.mesh.box3d(n, n, n, kind=kind, perturb=0.2)


def away(flow: fl.Diffusion, exact: Array) -> float:
    """Return the root of the mean square over the volume of what the scalar is from an exact one."""
    volume = flow.solver.volume.read()
    return sqrt(float(volume @ (flow.solver.scalar() - exact) ** 2 / volume.sum()))


def manufactured(kind: str, n: int) -> fl.Diffusion:
    ends = dict(ENDS) | ({} if kind in ("triangle", "quad") else {"zmin": None, "zmax": None})
    flow = fl.Diffusion(box(kind, n), context(), conductivity="1 + x * y", source=SOURCE, boundaries=ends, stop=TIGHT)
    assert fl.run(flow, fl.Steady(8)).status == "converged"
    return flow


@pytest.mark.parametrize(("kind", "n"), [("triangle", 16), ("quad", 16), ("tetra", 6), ("prism", 6)])
def test_second_order_in_space(kind: str, n: int) -> None:
    """All four conditions, and a conductivity that varies; other cells are divided."""
    errors = []
    for m in (n, 2 * n):
        flow = manufactured(kind, m)
        at = flow.solver.places
        errors.append(away(flow, np.exp(at[:, 0]) * np.sin(at[:, 1])))
    assert errors[1] < 1.5e-3
    assert 1.9 < log2(errors[0] / errors[1]) < 2.2


def test_what_passes_balances() -> None:
    """The heat through all patches and the source add up to nothing; each patch has what is exact."""
    flow = manufactured("triangle", 16)
    passes = {name: float(flow.solver.entering(name).sum()) for name in ENDS}
    cells = flow.solver.mesh.mesh.centroids.read()
    x, y = cells[:, 0], cells[:, 1]
    volumes = flow.solver.mesh.mesh.cell_geometry()[0]
    inside = float(volumes @ (-(y * np.exp(x) * np.sin(y) + x * np.exp(x) * np.cos(y))))
    assert abs(sum(passes.values()) + inside) < 1e-11
    exact = {"xmin": np.cos(1) - 1, "xmax": np.e * (1 - 2 * np.cos(1) + np.sin(1)),
             "ymin": -(np.e - 1), "ymax": np.e * np.cos(1)}  # fmt: skip
    for name, wanted in exact.items():
        assert passes[name] == pytest.approx(wanted, rel=0.02), name


def test_the_history_of_a_steady_state(tmp_path: Path) -> None:
    """Steps, and what passes; of the start fluxes are not known where values are given."""
    flow = fl.Diffusion(box("quad", 4), context(), conductivity=2.0, boundaries={
        "xmin": 1.0, "xmax": 0.0, "ymin": None, "ymax": None,
    })  # fmt: skip
    result = fl.run(flow, fl.Steady(), [fl.PatchFlow("xmin"), fl.History(1)], directory=tmp_path)
    assert result.time is None
    np.testing.assert_array_equal(result.history["step"], range(flow.steps + 1))
    assert np.isnan(result.history["xmin.scalar_flux"][0])
    np.testing.assert_allclose(result.history["xmin.scalar_flux"][1:], -2.0, rtol=1e-7)
    with pytest.raises(SolverError, match="dt: a run to an end in time needs the length of its steps"):
        fl.run(flow, fl.Time(1.0))


def test_layers_of_materials_are_exact() -> None:
    """The temperature is linear in each of two layers, and so are elements, on a mesh that is not regular across y."""
    mesh = fl.mesh.box2d(10, 7, kind="triangle")
    flow = fl.Diffusion(mesh, context(), conductivity="where(x < 0.4, 1, 20)", stop=TIGHT, boundaries={
        "xmin": 0.0, "xmax": fl.Convective(5.0, 1.0), "ymin": None, "ymax": None,
    })  # fmt: skip
    fl.run(flow, fl.Steady(8))
    heat = 1.0 / (0.4 / 1.0 + 0.6 / 20.0 + 1.0 / 5.0)
    x = flow.solver.places[:, 0]
    exact = heat * (np.minimum(x, 0.4) + np.maximum(x - 0.4, 0.0) / 20.0)
    np.testing.assert_allclose(flow.solver.scalar(), exact, atol=1e-12)
    assert float(flow.solver.entering("xmax").sum()) == pytest.approx(heat, rel=1e-11)


def decay(n: int, dt: float, end: float = 0.2) -> float:
    """Return the error of ``exp(-k pi^2 t / c) sin(pi x)``, in one dimension, over its size."""
    k, c = 0.7, 2.0
    flow = fl.Diffusion(
        fl.mesh.box2d(n, 2, (1.0, 2.0 / n), kind="triangle"), context(), conductivity=k, capacity=c, dt=dt,
        start="sin(pi * x)", boundaries={"xmin": 0.0, "xmax": 0.0, "ymin": None, "ymax": None}, stop=TIGHT,
    )  # fmt: skip
    fl.run(flow, fl.Time(end))
    factor = np.exp(-k * pi**2 * end / c)
    return away(flow, factor * np.sin(pi * flow.solver.places[:, 0])) / factor


def test_second_order_in_time() -> None:
    """Steps and intervals are halved together; then steps alone, on a mesh whose error is known."""
    errors = [decay(n, 1.6 / n) for n in (16, 32, 64)]
    assert errors[2] < 5e-4
    for coarse, fine in pairwise(errors):
        assert 1.9 < log2(coarse / fine) < 2.2


def pulse(dt: float) -> float:
    """Return the error of ``(cos(2 t) + t^2) x``, linear in space."""
    u = "cos(2 * t) * x + t**2 * x"
    flow = fl.Diffusion(
        fl.mesh.box2d(8, 2, (1.0, 0.25), kind="triangle"), context(), conductivity="1 + t", capacity="2 + sin(3 * t)",
        source="(2 + sin(3 * t)) * (2 * t - 2 * sin(2 * t)) * x", dt=dt, start="x", stop=TIGHT, boundaries={
            "xmin": fl.FixedFlux("-(1 + t) * (cos(2 * t) + t**2)"), "xmax": u,
            "ymin": fl.Convective("1 + t", u), "ymax": None,
        },
    )  # fmt: skip
    fl.run(flow, fl.Time(1.0))
    return away(flow, (np.cos(2.0) + 1.0) * flow.solver.places[:, 0])


def test_what_is_given_in_time() -> None:
    """All of it: conductivity, capacity, source, patches; the error in space is the same with all steps."""
    first, second, third = (pulse(dt) for dt in (0.1, 0.05, 0.025))
    assert 1.8 < log2((first - second) / (second - third)) < 2.2


def test_the_amount_gains_what_enters() -> None:
    """Over each step: the mean of what its two stages let in, and of the sources, by the weights of the method."""
    mesh = fl.mesh.box3d(3, 3, 3, kind="hexahedron", perturb=0.2)
    ends: dict[str, Any] = dict.fromkeys(("zmin", "zmax"))
    ends |= {"xmin": "sin(5 * t) * y", "xmax": fl.FixedFlux("y + t"), "ymin": fl.Convective(2.0, "t"), "ymax": "1 + t"}
    flow = fl.Diffusion(mesh, context(), conductivity="1 + x", capacity="2 - y", source="t * z", boundaries=ends,
                        dt=0.05, start="x", stop=TIGHT)  # fmt: skip
    solver, gamma = flow.solver, 1.0 - 1.0 / sqrt(2.0)
    volumes, z = solver.mesh.mesh.cell_geometry()[0], solver.mesh.mesh.centroids.read()[:, 2]
    fl.run(flow, fl.Steps(1))
    before, time = solver.state().amount, solver.time

    def gains() -> float:
        return float(sum(solver.entering(name).sum() for name in ends) + solver.time * (volumes @ z))

    solver._keep()
    solver._stage(1.0, gamma * 0.05, time + gamma * 0.05)
    solver.time = time + gamma * 0.05
    first = gains()
    solver.factor.value = (1.0 - gamma) / gamma
    solver._ahead()
    solver._stage(1.0, gamma * 0.05, time + 0.05)
    solver.time = time + 0.05
    second = gains()
    gained = solver.state().amount - before
    assert abs(gained) > 1e-3
    assert gained == pytest.approx(0.05 * ((1.0 - gamma) * first + gamma * second), abs=1e-13)


def test_a_level_that_nothing_says() -> None:
    ends: dict[str, Any] = dict.fromkeys(("xmin", "xmax", "ymin", "ymax"))
    for one in (None, fl.FixedFlux(0.0), fl.Convective(0.0, 3.0), fl.Convective("0 * x", 3.0)):
        some = ends | {"xmax": one}
        with pytest.raises(SolverError, match=r"^boundaries: nothing says the level of a steady state"):
            fl.run(fl.Diffusion(box("triangle", 4), context(), conductivity=1.0, boundaries=some), fl.Steady())
    flow = fl.Diffusion(box("triangle", 4), context(), conductivity=1.0, boundaries=ends, start="x", dt=1.0, stop=TIGHT)
    amount = flow.solver.state().amount
    fl.run(flow, fl.Time(50.0))
    np.testing.assert_allclose(flow.solver.scalar(), amount, rtol=1e-9)
    assert flow.solver.state().amount == pytest.approx(amount, rel=1e-12)


@pytest.mark.parametrize(("given", "text"), [
    ({"conductivity": "x - 0.5"}, "conductivity: 'x - 0.5' is -0.3.*above 0 is wanted"),
    ({"conductivity": 0.0}, "conductivity: 0 is 0 everywhere: above 0 is"),
    ({"capacity": -1.0}, "capacity: "),
    ({"source": "1 / (x - x)"}, "source: "),
    ({"start": "z"}, "start: 'z': unknown"),
    ({"boundaries": fl.Convective("x - 1", 0.0)}, "boundaries.xmin.coefficient: 'x - 1' is -1"),
    ({"dt": -1.0}, "dt: a number of"),
])  # fmt: skip
def test_what_does_not_fit(given: dict[str, Any], text: str) -> None:
    ends = dict.fromkeys(("xmin", "xmax", "ymin", "ymax"), given.pop("boundaries", 0.0))
    with pytest.raises(SolverError, match=text):
        fl.Diffusion(box("quad", 4), context(), **{"conductivity": 1.0, "boundaries": ends} | given)
    with pytest.raises(SolverError, match="Convective: coefficient: a number of at least 0"):
        fl.Convective(-1.0)
