r"""What a compressible flow does at the faces of patches: pressure, friction, y+, heat.

With the fluxes ``f`` of momentum and ``e`` of energy through a wall, its unit normal ``n`` into the body and its
velocity ``u``

.. math:: p = f \cdot n, \quad \tau = f - p n, \quad y^+ = y \sqrt{\rho |\tau|} / \mu, \quad q = e - f \cdot u

with density and viscosity at the wall, and the distance ``y`` along the normal of the centroid of the cell behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fluxloom.solvers.compressible import CompressibleFlow
from fluxloom.solvers.flow_spaces import patch_numbers

__all__ = ["PatchValues", "patch_values"]

Array = npt.NDArray[np.float64]

_TIGHT = 1e-12
"""Of density times speed of sound: mass that passes a face and is rounding."""


@dataclass(frozen=True, eq=False)
class PatchValues:
    """Values at the ``n`` faces of some patches, those of all ranks; on ranks other than the first there are none.

    Attributes
    ----------
    places, normals : (n, d)
        Centres, and unit normals into the body.
    area, pressure : (n,)
        Of the face, and the normal part of the flux of momentum.
    friction : (n, d)
        The rest of that flux: of the gas on the wall.
    y_plus : (n,)
        Of the cells behind; NaN for a gas without viscosity.
    temperature, heat, conductivity : (n,)
        Temperature at the face; heat that flows into a wall, W/m^2, NaN where gas passes the face; and the conductivity
        of the gas. Empty: not known.
    """

    places: Array
    normals: Array
    area: Array
    pressure: Array
    friction: Array
    y_plus: Array
    temperature: Array = field(default_factory=lambda: np.zeros(0))
    heat: Array = field(default_factory=lambda: np.zeros(0))
    conductivity: Array = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return len(self.area)

    @property
    def columns(self) -> dict[str, Array]:
        """What is known of the faces, ``(n,)`` each, by name; see `fluxloom.run.measures.Surface.faces`."""
        axes, viscous = "xyz"[: self.places.shape[1]], np.isfinite(self.y_plus).any()
        found = {name: self.places[:, k] for k, name in enumerate(axes)}
        found |= {f"n{name}": self.normals[:, k] for k, name in enumerate(axes)}
        found |= {"area": self.area, "p": self.pressure}
        if viscous:
            found |= {f"tau_{name}": self.friction[:, k] for k, name in enumerate(axes)} | {"y_plus": self.y_plus}
        if self.temperature.size:
            found["T"] = self.temperature
        if viscous and self.heat.size:
            found |= {"heat_flux": self.heat, "conductivity": self.conductivity}
        return found


def patch_values(flow: CompressibleFlow, patches: str | Sequence[str]) -> PatchValues:
    """Return what the present state does at the faces of one or several patches. Collective.

    Raises
    ------
    SolverError
        If a patch does not exist or is named twice.
    """
    flow.before()
    cv, d, local, gas = flow.volumes, flow.dimension, flow.spaces.elements.local, flow.gas
    numbers = patch_numbers(flow, patches)
    whole, w = flow.outflow.read()[local(numbers)], flow.w.read()[local(numbers)]
    flux = whole[:, 1 : 1 + d]
    face = numbers - cv.cells + cv.interior
    normals, area = cv.normals[face], cv.area[face]
    pressure = np.einsum("ij,ij->i", flux, normals)
    friction = flux - pressure[:, None] * normals
    plus, conductivity = np.full((2, numbers.size), np.nan)
    temperature = gas.temperature(w[:, : d + 2])
    heat = whole[:, 1 + d] - np.einsum("ij,ij->i", flux, w[:, 1 : 1 + d])  # less the work on a wall that slides
    heat[np.abs(whole[:, 0]) > _TIGHT * w[:, 0] * gas.sound(w[:, : d + 2])] = np.nan
    if gas.viscosity is not None:
        mu = np.asarray(gas.viscosity.at(temperature))
        conductivity = mu * gas.gamma * gas.constant / ((gas.gamma - 1.0) * gas.prandtl)
        plus = cv.spacing[face] * np.sqrt(w[:, 0] * np.linalg.norm(friction, axis=1)) / mu
    numbered = [plus, temperature, heat, conductivity]
    table = np.concatenate(
        [cv.centres[numbers], normals, area[:, None], pressure[:, None], friction, np.stack(numbered, axis=1)], axis=1
    )
    order = cv.shared.elements.numbers[local(numbers)]
    whole = _on_first(flow, np.concatenate([order[:, None].astype(np.float64), table], axis=1))
    whole = whole[np.argsort(whole[:, 0], kind="stable"), 1:]
    return PatchValues(
        whole[:, :d], whole[:, d : 2 * d], whole[:, 2 * d], whole[:, 2 * d + 1], whole[:, 2 * d + 2 : 3 * d + 2],
        *whole[:, 3 * d + 2 :].T,
    )  # fmt: skip


def _on_first(flow: CompressibleFlow, table: Array) -> Array:
    """Return the rows of all ranks on the first one, and none elsewhere. Collective."""
    comm = flow.context.comm
    table = np.ascontiguousarray(table)
    return np.concatenate(comm.exchange([table, *(table[:0] for _ in range(comm.size - 1))]))
