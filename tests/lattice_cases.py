"""Parts of cases of lattice Boltzmann flow on the lattice, without a flow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.cases.lattice.bodies import bodies_of, immersion_of, particles_of
from fluxloom.cases.lattice.tables import LatticeCase, units_of
from fluxloom.flows.lattice.given.bodies import solid_bodies
from fluxloom.flows.lattice.given.immersed import immersed_boundary
from fluxloom.lbm.boundaries import Body
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.immersed import ImmersedBoundary

__all__ = ["immersed_of", "particle_places", "solids_of"]


def _box(case: LatticeCase) -> Box:
    joined = tuple(f"{axis}min" not in case.boundary for axis in "zyx"[3 - case.mesh.dimension :])
    return Box(case.mesh.shape, joined)


def solids_of(case: LatticeCase) -> list[Body]:
    """Return the bodies whose walls are links."""
    return solid_bodies(bodies_of(case), _box(case), units_of(case))


def immersed_of(case: LatticeCase) -> ImmersedBoundary | None:
    """Return the immersed bodies and particles."""
    return immersed_boundary(bodies_of(case), particles_of(case), immersion_of(case), _box(case), units_of(case))


def particle_places(case: LatticeCase) -> npt.NDArray[np.float64]:
    """Return where particles begin."""
    particles, units = particles_of(case), units_of(case)
    assert particles is not None
    shapes = [body.shape.on_lattice(units) for body in bodies_of(case).values()]
    return particles.places(case.mesh.shape, shapes, units)
