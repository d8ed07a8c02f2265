r"""What a compressible flow does at the faces of patches: pressure and friction coefficients, y+, and cuts.

With the flux ``f`` of momentum through a wall, its unit normal ``n`` into the body and the dynamic pressure ``q``

.. math:: p = f \cdot n, \quad \tau = f - p n, \quad C_p = (p - p_\infty) / q, \quad C_f = \tau / q, \quad
          y^+ = y \sqrt{\rho |\tau|} / \mu

with density and viscosity at the wall, and the distance ``y`` along the normal of the centroid of the cell behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.free_stream import FreeStream
from fluxloom.mesh.geometry import face_geometry
from fluxloom.mesh.mesh import MeshData
from fluxloom.solvers.compressible import CompressibleFlow
from fluxloom.solvers.flow_patches import patch_numbers

__all__ = ["PatchValues", "SurfaceCut", "cut_patches", "patch_values"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_SAME = 1e-6
"""How far the centre of a face may be from its partner, as a part of the square root of its area, or of its length."""


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
    """

    places: Array
    normals: Array
    area: Array
    pressure: Array
    friction: Array
    y_plus: Array

    def __len__(self) -> int:
        return len(self.area)

    def columns(self, stream: FreeStream, dynamic_pressure: float, *, viscous: bool) -> dict[str, Array]:
        """Return the columns of a table: places, normals, area, pressure and coefficients.

        Parameters
        ----------
        stream, dynamic_pressure
            For coefficients; of a stream at rest there are none.
        viscous
            Whether there is friction.
        """
        axes = "xyz"[: self.places.shape[1]]
        found = {name: self.places[:, k] for k, name in enumerate(axes)}
        found |= {f"n{name}": self.normals[:, k] for k, name in enumerate(axes)}
        found |= {"area": self.area, "p": self.pressure}
        if dynamic_pressure > 0.0:
            found["cp"] = (self.pressure - stream.pressure) / dynamic_pressure
        if viscous and dynamic_pressure > 0.0:
            found |= {f"cf_{name}": self.friction[:, k] / dynamic_pressure for k, name in enumerate(axes)}
        if viscous:
            found["y_plus"] = self.y_plus
        return found


def patch_values(flow: CompressibleFlow, patches: str | Sequence[str]) -> PatchValues:
    """Return what the present state does at the faces of one or several patches. Collective.

    Raises
    ------
    SolverError
        If a patch does not exist or is named twice.
    """
    flow.before()
    cv, d, local = flow.volumes, flow.dimension, flow.spaces.elements.local
    numbers = patch_numbers(flow, patches)
    flux, w = flow.outflow.read()[local(numbers)][:, 1 : 1 + d], flow.w.read()[local(numbers)]
    face = numbers - cv.cells + cv.interior
    normals, area = cv.normals[face], cv.area[face]
    pressure = np.einsum("ij,ij->i", flux, normals)
    friction = flux - pressure[:, None] * normals
    plus = np.full(numbers.size, np.nan)
    if flow.gas.viscosity is not None:
        mu = np.asarray(flow.gas.viscosity.at(w[:, 1 + d] / (w[:, 0] * flow.gas.constant)))
        plus = cv.spacing[face] * np.sqrt(w[:, 0] * np.linalg.norm(friction, axis=1)) / mu
    table = np.concatenate(
        [cv.centres[numbers], normals, area[:, None], pressure[:, None], friction, plus[:, None]], axis=1
    )
    order = cv.shared.elements.numbers[local(numbers)]
    whole = _on_first(flow, np.concatenate([order[:, None].astype(np.float64), table], axis=1))
    whole = whole[np.argsort(whole[:, 0], kind="stable"), 1:]
    return PatchValues(
        whole[:, :d], whole[:, d : 2 * d], whole[:, 2 * d], whole[:, 2 * d + 1], whole[:, 2 * d + 2 : 3 * d + 2],
        whole[:, 3 * d + 2],
    )  # fmt: skip


def _on_first(flow: CompressibleFlow, table: Array) -> Array:
    """Return the rows of all ranks on the first one, and none elsewhere. Collective."""
    comm = flow.context.comm
    table = np.ascontiguousarray(table)
    return np.concatenate(comm.exchange([table, *(table[:0] for _ in range(comm.size - 1))]))


# ---------------------------------------------------------------------------------------------------------- cuts


@dataclass(frozen=True, eq=False)
class SurfaceCut:
    """Where a plane cuts the faces of patches in three dimensions.

    Attributes
    ----------
    places : (m, 3)
        Middles of the lines in which it cuts them.
    face : (m,)
        Which faces these are, in the order of the values.
    """

    places: Array
    face: Index


def cut_patches(
    mesh: MeshData, patches: Sequence[str], centres: Array, axis: int, station: float
) -> SurfaceCut:  # fmt: skip
    """Return where the plane ``x[axis] = station`` cuts the faces of some patches.

    Parameters
    ----------
    mesh
        In three dimensions.
    patches
        Names.
    centres : (n, 3)
        Of the faces, in the order of the values, as `PatchValues` has them.
    axis, station
        0, 1 or 2, and where.

    Raises
    ------
    SolverError
        In two dimensions, if the plane misses all faces, or the centres are not those of the faces.
    """
    from scipy.spatial import KDTree

    if mesh.dimension != 3 or axis not in range(3):
        raise SolverError(f"a cut: an axis of three dimensions is wanted, not {axis!r} in {mesh.dimension}")
    from fluxloom.mesh.wall_distance import wall_faces

    faces, nodes = wall_faces(mesh, patches)
    areas, middles = face_geometry(nodes, faces)
    distance, partner = KDTree(centres).query(middles)
    if len(centres) != len(faces) or (distance > _SAME * np.linalg.norm(areas, axis=1) ** 0.5).any():
        raise SolverError("a cut: the values are not those of the faces of these patches")
    owner = np.repeat(np.arange(len(faces)), faces.counts)
    here = nodes[faces.indices]
    after = np.arange(1, owner.size + 1)
    after[faces.offsets[1:] - 1] = faces.offsets[:-1]
    there = here[after]
    below = here[:, axis] < station
    crossed = np.flatnonzero(below != (there[:, axis] < station))
    if not crossed.size:
        low, high = nodes[:, axis].min(), nodes[:, axis].max()
        raise SolverError(
            f"a cut at {'xyz'[axis]} = {station:g} misses {', '.join(patches)}: {low:.6g} to {high:.6g} there"
        )
    part = (station - here[crossed, axis]) / (there[crossed, axis] - here[crossed, axis])
    points = here[crossed] + part[:, None] * (there[crossed] - here[crossed])
    cut, first, counts = np.unique(owner[crossed], return_index=True, return_counts=True)
    total = np.add.reduceat(points, first, axis=0)
    return SurfaceCut(total / counts[:, None], np.asarray(partner)[cut].astype(np.int64))
