"""Eddy viscosities in the flow solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.incompressible.boundary import NoSlip
from fluxloom.fv.incompressible.eddy_viscosity import EddyViscosity, Sigma, Wale, filter_areas
from fluxloom.linalg.status import Stop
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom_lab.exact.taylor_green import space_vortices

LENGTH = 2 * np.pi
TIGHT = Stop(rtol=1e-11)


@dataclass(frozen=True)
class Simple(EddyViscosity):
    """A model that can be followed by hand: ``nu_t = base + scale |du/dy|``, in proportion to the size of the cell."""

    base: float
    scale: float = 0.0

    @fl.func
    def __call__(self, g, area):
        return self.base + self.scale * area * fl.fabs(g[1])


@pytest.fixture(scope="module")
def ctx() -> fl.Context:
    return fl.Context("cpu", tuning=False)


def test_a_constant_eddy_viscosity_is_more_viscosity(ctx: fl.Context) -> None:
    sides = [("xmin", "xmax"), ("ymin", "ymax"), ("zmin", "zmax")]
    volumes = control_volumes(box3d(6, 5, 4, (LENGTH,) * 3, perturb=0.1), sides)
    found = []
    for nu, model in ((0.05, None), (0.02, Simple(0.03))):
        flow = Incompressible(ctx, volumes, nu, model=model, stop=TIGHT)
        flow.initialise(space_vortices)  # the model's viscosity is there from here on
        for _ in range(4):
            flow.step(0.05)
        found.append(flow.velocity())
    assert np.abs(found[0] - found[1]).max() < 1e-12
    assert np.abs(flow.nus.read() - 0.05).max() < 1e-15


def test_viscosity_at_the_faces(ctx: fl.Context) -> None:
    """Between cells the mean, at walls that of the fluid alone; the gradient of a shear is exact."""
    volumes = control_volumes(box2d(3, 6, (1.0, 2.0)), [("xmin", "xmax")])
    walls = {"ymin": NoSlip(), "ymax": NoSlip((4.0, 0.0))}
    flow = Incompressible(ctx, volumes, 0.1, walls, model=Simple(0.2, 3.0), stop=TIGHT)
    flow.initialise(lambda x: np.stack([2 * x[:, 1], 0 * x[:, 1]], axis=1))
    wanted = 0.2 + 3.0 * filter_areas(volumes.volumes) * 2.0
    assert np.allclose(flow.nut.read(), wanted, rtol=1e-12)
    inner = volumes.interior
    assert np.allclose(flow.nus.read()[:inner], 0.1 + wanted[volumes.faces[:inner]].mean(axis=1), rtol=1e-12)
    assert np.allclose(flow.nus.read()[inner:], 0.1, rtol=1e-15)


@pytest.mark.parametrize("model", [Wale(), Sigma()], ids=lambda m: type(m).__name__)
def test_models_take_energy_from_the_flow(ctx: fl.Context, model: Wale | Sigma) -> None:
    sides = [("xmin", "xmax"), ("ymin", "ymax"), ("zmin", "zmax")]
    volumes = control_volumes(box3d(6, 5, 4, (LENGTH,) * 3, perturb=0.1), sides)
    energies = []
    for chosen in (None, model):
        flow = Incompressible(ctx, volumes, 1e-3, model=chosen, stop=TIGHT)
        flow.initialise(lambda x: space_vortices(x) + 0.3 * np.sin(x[:, [1, 2, 0]]))
        for _ in range(5):
            flow.step(0.05)
        energies.append(flow.state().kinetic_energy)
    assert flow.nut.read().min() >= 0
    assert flow.nut.read().max() > 1e-3
    assert energies[1] < 0.999 * energies[0]
