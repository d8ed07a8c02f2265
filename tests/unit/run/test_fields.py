"""Fields: found when asked for, once; chosen by names and formulas; derived ones of linear fields are exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.flows.shallow.flow import Plan
from fluxloom.fv.compressible.boundary import FarField, NoSlipWall
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import ConstantViscosity, Gas
from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.incompressible.boundary import NoSlip
from fluxloom.fv.staggered.grid import StaggeredGrid
from fluxloom.mesh import MeshData, box2d, box3d
from fluxloom.run.fields import Fields, Quantity
from fluxloom.run.flow import Flow
from fluxloom.solvers.compressible.scheme import CompressibleScheme

GRADIENT = np.array([[0.3, -0.7, 0.2], [0.9, 0.1, -0.4], [-0.5, 0.6, -0.2]])
"""``du_i / dx_j``."""


@dataclass
class Counting:
    """Finds values, and counts how often."""

    asked: list[str] = field(default_factory=list)

    def of(self, name: str, values: np.ndarray) -> Callable[[], np.ndarray]:
        def found() -> np.ndarray:
            self.asked.append(name)
            return values

        return found


def sample() -> tuple[Fields, Counting]:
    counts, x = Counting(), np.array([1.0, 2.0, 4.0])
    fields = {
        "p": Quantity("Pa", "pressure", counts.of("p", x)),
        "u": Quantity("m/s", "velocity", counts.of("u", np.stack([x, -x], axis=1)), 2),
    }
    return Fields(fields, {"q": Quantity("1/s^2", "more", counts.of("q", x**2))}), counts


def test_values_are_found_once_when_they_are_asked_for() -> None:
    fields, counts = sample()
    assert (list(fields), len(fields), "u" in fields, "q" in fields) == (["p", "u"], 2, True, False)
    assert fields.units == {"p": "Pa", "u": "m/s"}
    assert counts.asked == []
    assert fields["p"] is fields["p"]
    assert counts.asked == ["p"]
    with pytest.raises(KeyError):
        fields["q"]
    both = fields | {"T": np.zeros(3)}
    assert list(both) == ["p", "u", "T"]
    assert both.chosen(["q", "p"])["q"].tolist() == [1.0, 4.0, 16.0]
    assert counts.asked == ["p", "q"]


def test_chosen_by_names_and_formulas() -> None:
    fields, counts = sample()
    assert fields.chosen(()) is fields
    found = fields.chosen(["q", "cp = (p - 1) / 2", "p = 2 * p + q"])
    assert counts.asked == []
    assert list(found) == ["q", "cp", "p"]
    assert found["cp"].tolist() == [0.0, 0.5, 1.5]
    assert found["p"].tolist() == [3.0, 8.0, 24.0]
    assert found.units == {"q": "1/s^2"}
    assert sorted(counts.asked) == ["p", "q"]


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ("pp", "no field 'pp'; did you mean 'p'? (fields: p, u, q; or NAME = a formula)"),
        ("cp = (r - 1)", "field cp: '(r - 1)': unknown name 'r'"),
        ("cp = u", "field cp: 'u': unknown name 'u'"),  # of two numbers
        ("cp = 2", "field cp: '2' has no field in it"),
        ("cp = p +", "field cp: 'p +' is not an expression"),
    ],
)
def test_what_is_no_field(wanted: str, text: str) -> None:
    fields, _ = sample()
    with pytest.raises(SolverError) as caught:
        fields.chosen([wanted])
    assert text in str(caught.value)
    with pytest.raises(SolverError, match="asked for twice"):
        fields.chosen(["p", "p"])


# ------------------------------------------------------------------------------------------ of linear fields


def context(comm: Comm | None = None) -> fl.Context:
    return fl.Context("cpu", comm=comm, threads=1, tuning=False)


def inside(cv: ControlVolumes) -> np.ndarray:
    """Return which owned cells have no face at a boundary."""
    edge = cv.faces[cv.interior :, 0]
    return ~np.isin(np.arange(cv.owned), edge)


def mesh_in(d: int) -> MeshData:
    return box3d(4, 4, 4, kind="tetra", perturb=0.2) if d == 3 else box2d(6, 5, kind="triangle", perturb=0.2)


def incompressible(d: int, comm: Comm) -> tuple[Flow, np.ndarray]:
    mesh = mesh_in(d)
    flow = fl.Incompressible(
        fl.Domain(mesh, method="rcb"), context(comm), viscosity=0.1, boundaries=dict.fromkeys(mesh.patches, NoSlip())
    )
    cv = flow.solver.volumes
    flow.solver.u.write((cv.centres @ GRADIENT[:d, :d].T)[flow.solver.spaces.elements.owned])
    return flow, inside(cv)


def compressible(d: int, comm: Comm, *, stream: bool = True) -> tuple[fl.Compressible, np.ndarray]:
    mesh, steep = mesh_in(d), np.array([0.02, -0.03, 0.06])[:d]
    flow = fl.Compressible(
        fl.Domain(mesh, method="rcb"), context(comm), scheme=CompressibleScheme(limiter=None),
        boundaries=dict.fromkeys(mesh.patches, FarField((1.0, *[0.0] * d, 1.0))),
        start=lambda x: np.column_stack([2.0 + x @ steep, 0.1 * x @ GRADIENT[:d, :d].T, 3.0 + 0.0 * x[:, 0]]),
        stream=FreeStream(0.5, 3.0, 300.0, (1.0, *[0.0] * (d - 1))) if stream else None,
    )  # fmt: skip
    return flow, inside(flow.solver.volumes)


def edges(d: int, comm: Comm) -> tuple[Flow, np.ndarray]:
    mesh = mesh_in(d)
    flow = fl.EdgeFlow(mesh, context(comm), viscosity=0.1, boundaries=dict.fromkeys(mesh.patches, NoSlip()))
    x = flow.domain.coordinates[: flow.domain.points.size]
    flow.solver.loops.u.write(x @ GRADIENT[:d, :d].T)
    return flow, np.ones(len(x), dtype=bool)


def staggered(d: int, comm: Comm) -> tuple[Flow, np.ndarray]:
    lines = (np.linspace(0.0, 1.0, 6), np.array([0.0, 0.1, 0.3, 0.6, 0.8, 1.0]), np.linspace(0.0, 1.0, 5))[:d]
    grid = StaggeredGrid(lines, (False,) * d)
    sides = dict.fromkeys((f"{axis}{end}" for axis in "xyz"[:d] for end in ("min", "max")), NoSlip())
    whole = fl.Staggered(grid, context(), viscosity=0.1, boundaries=sides)
    flow = whole.solver
    values = [sum(GRADIENT[a, b] * grid.places(a)[b] for b in range(d)) for a in range(d)]
    u = flow.fields.u.read()
    for a in range(d):
        u[(*grid.face_window(a), a)] = values[a]
    flow.fields.u.write(u)
    numbers = np.arange(grid.cells).reshape(grid.shape)
    inner = np.zeros(grid.cells, dtype=bool)
    inner[numbers[(slice(1, -1),) * d].ravel()] = True
    return whole, inner


def water(d: int, comm: Comm) -> tuple[Flow, np.ndarray]:
    """Return all wet cells: in corners too, where triangles have one neighbour. Dry ones have a hole in the middle."""
    g = GRADIENT[:2, :2]
    flow = fl.ShallowWater(
        fl.Domain(mesh_in(2), method="rcb"), context(comm), plan=Plan(1.0, 1),
        bed=lambda x, y: np.where(np.hypot(x - 0.5, y - 0.5) < 0.2, 1.0, -1.0),
        velocity=tuple(lambda x, y, row=row: row[0] * x + row[1] * y for row in g),
    )  # fmt: skip
    return flow, flow.fields()["depth"] > 0.0


def airfoil(d: int, comm: Comm) -> tuple[Flow, np.ndarray]:
    flow = fl.Airfoil((16, 10), context(comm))
    where, _, _ = flow._primitive()
    uv = where.read()[:, :2] @ GRADIENT[:2, :2].T
    flow.solver.q.write(np.column_stack([np.full(len(uv), 2.0), 2.0 * uv, 9.0 + (uv**2).sum(axis=1)]))
    return flow, np.ones(len(uv), dtype=bool)


def expected(d: int, scale: float = 1.0) -> dict[str, float]:
    """Return what is derived of the gradient."""
    g = scale * GRADIENT[:d, :d]
    strain, turn = 0.5 * (g + g.T), 0.5 * (g - g.T)
    found = {"q_criterion": 0.5 * ((turn**2).sum() - (strain**2).sum()), "divergence": np.trace(g)}
    if d == 2:
        return found | {"vorticity": g[1, 0] - g[0, 1]}
    curl = np.array([g[2, 1] - g[1, 2], g[0, 2] - g[2, 0], g[1, 0] - g[0, 1]])
    found |= {"vorticity": float(np.linalg.norm(curl))}
    return found | {f"vorticity_{axis}": float(curl[k]) for k, axis in enumerate("xyz")}


@pytest.mark.parametrize(("make", "d"), [
    *((make, d) for make in (incompressible, compressible, edges, staggered) for d in (2, 3)),
    (water, 2), (airfoil, 2),
])  # fmt: skip
def test_gradients_of_linear_fields(make: Callable[[int, Comm], tuple[Flow, np.ndarray]], d: int) -> None:
    """On triangles and tetrahedra, of the staggered grid on a stretched axis."""
    flow, exact = make(d, SelfComm())
    fields = flow.fields()
    assert isinstance(fields, Fields)
    wanted = expected(d, 0.1 if make is compressible else 1.0)
    found = fields.chosen(list(wanted))
    assert exact.sum() > 8
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name][exact], value, atol=2e-7, err_msg=name)


@pytest.mark.parametrize("make", [incompressible, compressible, edges, water, airfoil])
def test_gradients_on_two_ranks(make: Callable[[int, Comm], tuple[Flow, np.ndarray]]) -> None:
    """Cells at the sides of the ranks are not those of a boundary."""
    wanted = expected(2 if make in (water, airfoil) else 3, 0.1 if make is compressible else 1.0)

    def found(comm: Comm) -> list[np.ndarray]:
        """Return what a rank has."""
        flow, exact = make(3, comm)
        fields: Any = flow.fields()
        return [values[exact] for values in fields.chosen(list(wanted)).values()]

    ranks = run_threads(2, found)
    assert all(len(values[0]) for values in ranks)
    for name, parts in zip(wanted, zip(*ranks, strict=True), strict=True):
        np.testing.assert_allclose(np.concatenate(parts), wanted[name], atol=2e-7, err_msg=name)


def test_gradients_along_a_line() -> None:
    """A channel one cell wide knows what changes along it alone; a cell alone knows nothing, and dry ones have none."""
    for columns, slope in ((4, 0.5), (1, 0.0)):
        flow = fl.ShallowWater(
            box2d(columns, 1, (2.0, 1.0)), context(), plan=Plan(1.0, 1), bed=-1.0,
            velocity=(lambda x, y: 0.5 * x, lambda x, y: 0.5 * x),
        )  # fmt: skip
        found = flow.fields().chosen(["divergence", "vorticity"])
        assert [values.tolist() for values in found.values()] == [pytest.approx([slope] * columns)] * 2
    flow, wet = water(2, SelfComm())
    assert 0 < (~wet).sum() < wet.size
    assert not np.asarray(flow.fields().chosen(["vorticity"])["vorticity"])[~wet].any()


def test_gradients_leave_a_flow_as_it_is() -> None:
    """Asked for between steps, they change no bit of what follows."""
    runs = []
    for looks in (False, True):
        flow, _ = compressible(2, SelfComm())
        for _ in range(4):
            flow.solver.iterate()
            if looks:
                assert np.isfinite(flow.fields().chosen(["schlieren", "q_criterion"])["schlieren"]).all()
        runs.append(flow.solver.states())
    np.testing.assert_array_equal(*runs)


def test_fields_of_a_gas() -> None:
    """Against their formulas; without a free stream there is no pressure coefficient."""
    flow, exact = compressible(3, SelfComm())
    w, gas, stream = flow.solver.states(), flow.solver.gas, flow.stream
    assert stream is not None
    fields = flow.fields()
    names = ["total_pressure", "total_temperature", "entropy", "cp", "schlieren", "speed", "limited"]
    found = fields.chosen(names)
    mach = np.linalg.norm(w[:, 1:4], axis=1) / np.sqrt(1.4 * w[:, 4] / w[:, 0])
    hot = 1.0 + 0.2 * mach**2
    np.testing.assert_allclose(fields["mach"], mach)
    np.testing.assert_allclose(found["total_pressure"], w[:, 4] * hot**3.5)
    np.testing.assert_allclose(found["total_temperature"], fields["T"] * hot)
    far = stream.state(gas, 3)
    s = gas.constant / 0.4 * (np.log(w[:, 4] / w[:, 0] ** 1.4) - np.log(far[4] / far[0] ** 1.4))
    np.testing.assert_allclose(found["entropy"], s, rtol=1e-10)
    np.testing.assert_allclose(found["cp"], (w[:, 4] - 3.0) / stream.dynamic_pressure(gas), atol=1e-14)
    np.testing.assert_allclose(found["schlieren"][exact], 0.07, atol=2e-7)
    assert found["limited"].max() == 0.0
    assert found.units["entropy"] == "J/(kg K)"
    with pytest.raises(SolverError, match="no field 'cp'"):
        compressible(3, SelfComm(), stream=False)[0].fields().chosen(["cp"])


def test_fields_of_a_model_of_turbulence() -> None:
    """The eddy viscosity is that of the model, 0 where its variable is negative; the wall distance that of cells."""
    mesh = mesh_in(2)
    far: dict[str, Any] = dict.fromkeys(mesh.patches, FarField((1.0, 0.0, 0.0, 1.0)))
    flow = fl.Compressible(
        mesh, context(), boundaries=far | {"ymin": NoSlipWall()}, start=(2.0, 0.0, 0.0, 1.0, 0.1),
        gas=Gas(constant=1.0, viscosity=ConstantViscosity(0.1)),
        scheme=CompressibleScheme(limiter=None, turbulence=SpalartAllmaras()),
    )  # fmt: skip
    cv = flow.solver.volumes
    nut = np.linspace(-0.5, 2.0, cv.cells)
    flow.solver.start(np.column_stack([np.full(cv.cells, 2.0), 0.0 * nut, 0.0 * nut, np.ones(cv.cells), nut]))
    found = flow.fields().chosen(["mu_t", "wall_distance", "nu_tilde"])
    chi = np.maximum(nut, 0.0) / 0.05
    np.testing.assert_allclose(found["mu_t"], 2.0 * np.maximum(nut, 0.0) * chi**3 / (chi**3 + 7.1**3), atol=1e-15)
    np.testing.assert_allclose(found["wall_distance"], cv.centres[: cv.cells, 1])
    assert found["nu_tilde"].min() == -0.5


def test_of_a_result() -> None:
    """By names, and by formulas."""
    flow, _ = edges(2, SelfComm())
    result = fl.run(flow, fl.Steps(1))
    assert list(result.fields) == ["u", "v", "speed", "p", "vorticity"]
    found = result.chosen(["q_criterion", "ke = 0.5 * speed**2"])
    np.testing.assert_allclose(found["ke"], 0.5 * (result.fields["u"] ** 2 + result.fields["v"] ** 2), rtol=1e-12)
    assert np.isfinite(found["q_criterion"]).all()
    with pytest.raises(SolverError, match="no field 'vortex'; did you mean 'vorticity'"):
        result.chosen(["vortex"])
