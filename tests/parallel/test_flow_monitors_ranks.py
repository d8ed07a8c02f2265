"""Scalars, statistics, probes and forces on several ranks: those of one rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth, RungeKutta
from fluxloom.fv.incompressible.scalar_boundary import Adiabatic, FixedFlux, FixedValue
from fluxloom.linalg import Stop
from fluxloom.mesh import box2d
from fluxloom.monitors.running_means import RunningMeans
from fluxloom.solvers.incompressible.forces import Forces
from fluxloom.solvers.incompressible.probes import Probes
from fluxloom.solvers.incompressible.scalar import Buoyancy, Scalar

SIDES: dict[str, Any] = {"xmin": Inflow((1.0, 0.1)), "xmax": Outflow(), "ymin": NoSlip(), "ymax": NoSlip((0.3, 0.0))}
HEAT = Scalar(
    "T", 0.02, {"xmin": FixedValue(1.0), "xmax": Outflow(), "ymin": FixedFlux(0.4), "ymax": Adiabatic()},
    source=0.2, initial=lambda x: np.sin(3 * x[:, 0]), buoyancy=Buoyancy((0.0, -1.0), 0.5),
)  # fmt: skip
POINTS = {"a": (0.2, 0.3), "b": (0.5, 0.5), "c": (0.99, 0.01)}


def flow_of(comm: Comm, scheme: Any) -> fl.Incompressible:
    return fl.Incompressible(
        fl.Domain(box2d(9, 6, perturb=0.1), method="rcb"), fl.Context("cpu", comm=comm, tuning=False, threads=1),
        viscosity=0.01, boundaries=SIDES, start=(1.0, 0.0), scheme=fl.IncompressibleScheme(time=scheme),
        pressure=fl.Pressure(stop=Stop(rtol=1e-12)), scalars=[HEAT],
    )  # fmt: skip


def seen(comm: Comm, scheme: Any) -> dict[str, np.ndarray]:
    """Return what all ranks know after some steps."""
    whole = flow_of(comm, scheme)
    flow, statistics = whole.solver, RunningMeans(whole.averaged())
    probes = Probes(flow, POINTS, capacity=3)
    forces, balance = Forces(flow, "ymin"), Forces(flow, list(SIDES), balance=True)
    for _ in range(4):
        flow.step(0.01)
        statistics.sample(0.01)
        probes.sample()
        forces.sample()
    profile, series, scalar = statistics.profile("y", bins=4), probes.series(), flow.scalars["T"]
    content, flux = scalar.content(), scalar.flux("ymin")
    found = {
        "profile": np.column_stack([profile.coordinate, profile.volume, *profile.columns.values()]),
        "velocity": series.velocity, "pressure": series.pressure, "scalar": series.scalars["T"],
        "force": np.concatenate([forces.series().pressure, forces.series().friction]),
        "balance": np.concatenate([balance.now().total, balance.now().momentum]),
        "content": np.array([content.total, content.square, content.least, content.largest]),
        "flux": np.array([flux.diffusive, flux.convective, flux.area]), "limit": np.array(flow.stable_step()),
    }  # fmt: skip
    return found


@pytest.mark.parametrize(("ranks", "scheme"), [(2, RungeKutta()), (3, AdamsBashforth())])
def test_all_of_one_rank(ranks: int, scheme: Any) -> None:
    alone = run_threads(1, lambda comm: seen(comm, scheme))[0]
    for found in run_threads(ranks, lambda comm: seen(comm, scheme)):
        for name, wanted in alone.items():
            np.testing.assert_allclose(found[name], wanted, rtol=1e-7, atol=1e-8, err_msg=name)


def test_a_point_outside_is_outside_for_all() -> None:
    def lost(comm: Comm) -> str:
        with pytest.raises(SolverError, match=r"probe 'b' at .* is not in the mesh") as error:
            Probes(flow_of(comm, AdamsBashforth()).solver, {"a": (0.5, 0.5), "b": (0.5, 1.2)})
        return str(error.value)

    assert len(set(run_threads(2, lost))) == 1


def test_walls_that_a_rank_has_no_face_of() -> None:
    """The second half of a tall box has none of ``ymin``; the viscosity is given in space."""
    walls = {name: NoSlip((0.3 * (name == "ymax"), 0.0)) for name in SIDES}

    def found(comm: Comm) -> dict[str, np.ndarray]:
        flow = fl.Incompressible(
            fl.Domain(box2d(4, 12, (1.0, 3.0)), method="rcb"), fl.Context("cpu", comm=comm, tuning=False, threads=1),
            viscosity="0.01 + 0.01 * y", boundaries=walls, start=(1.0, 0.0),
        )  # fmt: skip
        flow.solver.step(0.01)
        return dict(flow.surface(["ymin"]).faces())

    alone, (whole, others) = run_threads(1, found)[0], run_threads(2, found)
    assert not others
    assert list(whole) == list(alone)
    assert "y_plus" in alone
    for name, wanted in alone.items():
        np.testing.assert_allclose(whole[name], wanted, rtol=1e-7, atol=1e-8, err_msg=name)
