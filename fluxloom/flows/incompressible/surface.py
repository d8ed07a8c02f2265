"""Patches of incompressible flow in finite volumes as a surface that monitors measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.fv.incompressible.boundary import moving_walls
from fluxloom.run.flow_run import rows_in_order
from fluxloom.run.measures import Loads
from fluxloom.solvers.flow_spaces import patch_numbers
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.forces import Forces
from fluxloom.solvers.incompressible.scalar import FlowScalar

__all__ = ["IncompressibleSurface"]

Array = npt.NDArray[np.float64]


class IncompressibleSurface:
    """Some patches, see `fluxloom.run.measures.Surface`; parameters: `fluxloom.solvers.incompressible.forces.Forces`.

    Forces are over the density, and the pressure is kinematic.
    """

    def __init__(
        self, solver: Incompressible, patches: Sequence[str], about: Sequence[float], *, balance: bool = False
    ) -> None:  # fmt: skip
        self.patches, self._solver = tuple(patches), solver
        self._forces = Forces(solver, self.patches, balance=balance, about=about)

    def take(self) -> None:
        """Let the device find the sums of now. Collective."""
        self._forces.take()

    def collect(self) -> Loads:
        """Return what `take` asked for last. Collective."""
        found = self._forces.collect()
        means = {"p": found.mean_pressure, "total_pressure": found.mean_total}
        return Loads(found.pressure, found.friction, found.moment, found.flow, found.area, means=means)

    def carried(self) -> Mapping[str, tuple[float, float]]:
        """Return of each scalar ``sum theta A / sum A``, and what leaves by diffusion and with the flow. Collective."""
        found: dict[str, tuple[float, float]] = {}
        for name, scalar in self._solver.scalars.all.items():
            fluxes = [scalar.flux(patch) for patch in self.patches]
            area = sum(flux.area for flux in fluxes)
            mean = sum(flux.mean * flux.area for flux in fluxes if flux.area) / area if area else float("nan")
            found[name] = mean, -sum(flux.diffusive + flux.convective for flux in fluxes)
        return found

    def faces(self) -> Mapping[str, Array]:
        """Return values of the faces on rank 0. Collective.

        The wall shear stress is the part along the face of the viscous flux, with the eddy viscosity there;
        ``y_plus = y sqrt(tau) / nu`` with the distance ``y`` of the centroid behind the face along its normal.
        """
        solver, cv, d = self._solver, self._solver.volumes, self._solver.dimension
        numbers = patch_numbers(solver, self.patches)
        here = solver.spaces.elements.local(numbers)
        self._forces.take()
        load, face = self._forces.load.read()[here], numbers - cv.cells + cv.interior
        normals, area = cv.normals[face], cv.area[face]
        tau = load[:, d : 2 * d] / area[:, None]
        tau -= np.einsum("ij,ij->i", tau, normals)[:, None] * normals
        axes = "xyz"[:d]
        found = {name: cv.centres[numbers, k] for k, name in enumerate(axes)}
        found |= {f"n{name}": normals[:, k] for k, name in enumerate(axes)}
        found |= {"area": area, "p": load[:, 2 * d] / solver.impulse}
        found |= {f"tau_{name}": tau[:, k] for k, name in enumerate(axes)}
        given = solver.given_viscosity
        nu = solver.viscosity if given is None else given.nu.read()[here, 0]
        if given is not None or nu:  # on each rank alike, also where a rank has none of the faces
            found["y_plus"] = cv.spacing[face] * np.sqrt(np.linalg.norm(tau, axis=1)) / nu
        for name, scalar in solver.scalars.all.items():
            found |= {name: scalar.theta.read()[here, 0], f"{name}_flux": -self._entering(scalar, here) / area}
            found[f"{name}_diffusivity"] = np.full(area.size, scalar.scalar.diffusivity)
        if moving := moving_walls(solver.boundaries, self.patches):
            found["moves"] = np.isin(numbers, patch_numbers(solver, moving)).astype(np.float64)
        order = cv.shared.elements.numbers[here]
        rows = rows_in_order(solver.context.comm, order, np.stack(list(found.values()), axis=1))
        return {} if solver.context.comm.rank else dict(zip(found, rows.T, strict=True))

    def _entering(self, scalar: FlowScalar, here: npt.NDArray[Any]) -> Array:
        """Return what diffuses into the flow through each of the boundary elements ``here``."""
        found = np.zeros(self._solver.volumes.elements)
        for patch in self.patches:
            scalar.flux(patch)
            mine = self._solver.spaces.elements.local(patch_numbers(self._solver, patch))
            found[mine] = scalar.entering.read()[mine]
        return found[here]
