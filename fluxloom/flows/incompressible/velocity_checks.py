"""Whether given velocities of an incompressible flow fit: walls slide along themselves, what flows in can leave."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.comm.base import Comm
from fluxloom.core.errors import SolverError
from fluxloom.fe.edges.point_mesh import PointMesh
from fluxloom.flows.given import check_value
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.given import given_values, sliding
from fluxloom.fv.incompressible.boundary import Boundary, FlowConditions, NoSlip, Outflow
from fluxloom.solvers.incompressible.types import finite_vector, surplus
from fluxloom.values.value import has_values

__all__ = ["check_velocities", "check_walls"]

Array = npt.NDArray[np.float64]

_ALONG = 1e-3
"""Part of ``|u| A`` that may pass a wall: files with coordinates in single precision have normals of few digits."""


def _check_wall(name: str, through: Array, size: Array) -> None:
    """Raise `SolverError` where more passes the faces of a wall, ``u . n A``, than rounding makes of ``|u| A``."""
    if (np.abs(through) > _ALONG * size).any():
        raise SolverError(
            f"boundaries.{name}.velocity: a wall slides along itself, and this one has a part along its normal; an "
            "Inflow lets fluid through"
        )


def _check_start(name: str, boundary: object, places: Array) -> None:
    """Raise `SolverError` where what a patch is given does not fit its places at the start."""
    if isinstance(boundary, Outflow):
        check_value(f"boundaries.{name}.pressure", boundary.pressure, places)
    elif isinstance(boundary, Boundary) and boundary.prescribed is not None:
        check_value(f"boundaries.{name}.velocity", boundary.prescribed, places, places.shape[1])


def check_velocities(volumes: ControlVolumes, boundaries: Mapping[str, Boundary], comm: Comm) -> None:
    """Raise `SolverError` where a wall moves along its normal, or more flows in than can leave. Collective."""

    def given() -> tuple[float, float, bool]:
        """Return flux and size of the velocities of this rank, and whether there is an outflow."""
        for name, boundary in boundaries.items():
            if name in volumes.patches:
                _check_start(name, boundary, volumes.centres[volumes.patches[name]])
        try:
            known = FlowConditions.of(volumes, boundaries)
        except SolverError as error:
            raise SolverError(f"boundaries: {error}") from None
        through = np.einsum("ij,ij->i", known.given, volumes.areas[volumes.interior :])
        size = np.linalg.norm(known.given, axis=1) * volumes.area[volumes.interior :]
        for name, elements in volumes.patches.items():
            place = slice(elements.start - volumes.cells, elements.stop - volumes.cells)
            if isinstance(boundaries[name], NoSlip):
                _check_wall(name, through[place], size[place])
        some = known.prescribed
        return float(through[some].sum()), float(size[some].sum()), bool(known.open.any())

    if more := surplus(comm, *raise_on_all_ranks(comm, given)):
        raise SolverError(
            f"boundaries: the given velocities let {abs(more):.6g} more {'in' if more < 0 else 'out'}, and no patch is "
            "an outflow, where the flow is free"
        )


def check_walls(mesh: PointMesh, boundaries: Mapping[str, object]) -> None:
    """Raise `SolverError` where a wall of a mesh that is seen from its points moves along its normal at the start.

    And where what a patch is given does not fit its points. Collective.
    """

    def given() -> None:
        for name, wall in boundaries.items():
            if name not in mesh.patches:
                continue
            patch, d = mesh.patches[name], mesh.dimension
            _check_start(name, wall, mesh.coordinates[patch.points])
            if not isinstance(wall, NoSlip):
                continue
            if callable(wall.velocity) or has_values(wall.velocity):
                what = f"boundaries.{name}"
                sliding(what, given_values(what, wall.velocity, mesh.coordinates[patch.points], d), patch.areas)
            else:
                velocity = finite_vector(f"boundaries.{name}.velocity", wall.velocity, d)
                _check_wall(name, patch.areas @ velocity, np.linalg.norm(velocity) * patch.size)

    raise_on_all_ranks(mesh.context.comm, given)
