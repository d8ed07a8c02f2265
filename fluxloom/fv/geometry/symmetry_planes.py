r"""Planes of symmetry of control volumes: how large the flow is that they stand for, and whether it is a plane one.

A face in a plane of symmetry has beyond it the *image* of the cell behind, with the state of that, mirrored, at

.. math:: x' = x + 2 (a \cdot n) n

where ``a`` is the way from the centroid of the cell to the face. The image is across the face as any other cell is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import total_of_ranks
from fluxloom.fv.geometry.volumes import ControlVolumes

__all__ = ["extruded_along", "in_planes", "is_flat", "reference_length"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.integer]

_SAME = 1e-2
"""Of one less the cosine of the angle between planes that are taken for parallel ones."""
_STRAIGHT = 1e-6
"""Cosine of the angle between the axis of an extrusion and a face along it, at most."""
_PLANE = 1e-9
"""Of one less the cosine of the angle between the normals of two faces of one plane."""
_PLANES = 6
"""Directions of planes that one patch may have; one with more is curved."""
_FIT = 1e-6
"""Distance of planes that are one, as a part of the size of the mesh."""


def _directions(normals: Array, same: float = _SAME, most: int | None = None) -> list[Array]:
    """Return the different directions among unit vectors ``(n, d)``, up to their sign; no more than so many."""
    found = []
    while len(normals) and len(found) != most:
        found.append(normals[0])
        normals = normals[np.abs(normals @ normals[0]) < 1.0 - same]
    return found


def in_planes(volumes: ControlVolumes, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which of some boundary elements ``(n,)`` are of patches made of planes. Collective.

    On curved ones, which are walls without friction, what is beyond is no image of what is before.
    """
    found, comm = chosen.copy(), volumes.shared.comm
    for name in sorted(volumes.patches):
        numbers = np.asarray(volumes.patches[name], dtype=np.int64) - volumes.cells
        normals = volumes.normals[volumes.interior + numbers[chosen[numbers]]]
        ways = comm.allgather(_directions(normals, _PLANE, _PLANES + 1))
        ways = _directions(np.array([way for part in ways for way in part]), _PLANE)
        if len(ways) > _PLANES:
            found[numbers] = False
    return found


def is_flat(volumes: ControlVolumes, patch: str, comm: Comm) -> bool:
    """Return whether all faces of a patch are parallel: so walls of tunnels are, and planes of symmetry. Collective."""
    elements = np.asarray(volumes.patches.get(patch, ()), dtype=np.int64)
    normals = volumes.normals[elements - volumes.cells + volumes.interior]
    ways = [way for found in comm.allgather(_directions(normals, _PLANE, 2)) for way in found]
    return len(_directions(np.array(ways).reshape(-1, volumes.dimension), _PLANE, 2)) < 2


def _everywhere(vectors: Array, comm: Comm) -> list[Array]:
    """Return the different directions among those of all ranks. Collective."""
    found = [item for items in comm.allgather(_directions(vectors)) for item in items]
    return _directions(np.array(found).reshape(-1, vectors.shape[1]))


def extruded_along(volumes: ControlVolumes, mirrors: Index, comm: Comm) -> Array | None:
    """Return the direction along which cells are straight prisms from end to end, ``(3,)``; None: there is none.

    Both ends are planes of symmetry, or periodic: the flow is that of the plane mesh then, if it starts so. Collective.

    Parameters
    ----------
    volumes
        Control volumes; in two dimensions there is no such direction.
    mirrors
        Boundary elements in planes of symmetry.
    comm
        The ranks.
    """
    if volumes.dimension != 3:
        return None
    normals, offset = volumes.normals, volumes.interior - volumes.cells
    shift = volumes.wrapped.shift
    ends = np.concatenate([normals[mirrors + offset], shift / np.linalg.norm(shift, axis=1)[:, None]])
    closed = np.setdiff1d(volumes.outer, mirrors)
    for axis in sorted(_everywhere(ends, comm), key=lambda way: -abs(way[2])):
        leaning = np.abs(normals @ axis)
        straight = (leaning < _STRAIGHT) | (leaning > 1.0 - _STRAIGHT)
        fits = bool(straight.all() and (leaning[closed + offset] < _STRAIGHT).all())
        if all(comm.allgather(fits)):
            return axis
    return None


def reference_length(
    volumes: ControlVolumes, walls: Collection[str], symmetric: Collection[str], context: Context
) -> float:
    r"""Return a length of a flow that has no other, ``l = sqrt(12 lambda)``: how far its walls reach. Collective.

    It is :math:`\sqrt{12 \lambda}` with the largest principal moment :math:`\lambda` of the walls about their
    centre, per unit of area: the length of a straight line. In three dimensions it is the second largest one: of a
    wing the chord, as of its sections, not the span, and of a pipe the width. Planes of symmetry count as what they
    stand for: moments along their normals are about the plane, and there are none between two of them, nor between
    periodic patches. So it is the same for a mesh that is turned or moved, for half a flow, and for a plane one
    that is extruded. Without walls it is that of all patches, and where there are none the longest way between
    periodic ones.

    Parameters
    ----------
    volumes
        Control volumes.
    walls, symmetric
        Names of the patches that are walls, and planes of symmetry.
    context
        With the ranks.
    """
    comm = context.comm
    patches = {name: span for name, span in volumes.patches.items() if name not in symmetric}
    chosen = _elements({name: span for name, span in patches.items() if name in walls})
    if not any(comm.allgather(chosen.size > 0)):
        chosen = _elements(patches)
    d, offset = volumes.dimension, volumes.interior - volumes.cells
    places, weight = volumes.centres[chosen], volumes.area[chosen + offset]
    size = max(comm.allgather(float(np.ptp(volumes.centres, axis=0).max(initial=0.0))))
    numbers = volumes.shared.cells.numbers
    start = (int(numbers[0]), volumes.centres[0].tolist()) if len(numbers) else (2**63, [0.0] * d)
    places = places - (origin := np.array(min(comm.allgather(start))[1]))  # near the mesh, wherever that is
    rows = weight[:, None] * np.column_stack([np.ones(len(weight)), places])
    total = total_of_ranks(context, np.concatenate([[weight.sum()], weight @ places]), rows)
    shift = volumes.wrapped.shift
    repeated = np.linalg.norm(shift, axis=1)
    rest = max(comm.allgather(float(repeated.max(initial=0.0)))) or size or 1.0
    if not total[0] > 0.0:
        return rest
    middle = total[1:] / total[0]
    mirrors = _elements({name: span for name, span in volumes.patches.items() if name in symmetric})
    kept = np.eye(d)
    for way in _everywhere(shift / repeated[:, None], comm):
        kept = kept - np.outer(way, way @ kept)
    normals = volumes.normals[mirrors + offset]
    for way in _everywhere(normals, comm):
        heights = (volumes.centres[mirrors] - origin)[np.abs(normals @ way) >= 1.0 - _SAME] @ way
        spans = list(comm.allgather((heights.min(initial=np.inf), heights.max(initial=-np.inf))))
        low, high = min(span[0] for span in spans), max(span[1] for span in spans)
        middle = middle + (low - middle @ way) * way
        if high - low > _FIT * max(size, abs(high)):
            kept = kept - np.outer(way, way @ kept)
    away = places - middle
    squares = np.einsum("n,ni,nj->nij", weight, away, away)
    moment = total_of_ranks(context, np.einsum("n,ni,nj->ij", weight, away, away), squares) / total[0]
    for way in _everywhere(normals, comm):
        along = np.outer(way, way)
        across = np.eye(d) - along
        moment = across @ moment @ across + along * float(way @ moment @ way)
    moments = np.linalg.eigvalsh(kept @ moment @ kept.T)
    ways = round(np.trace(kept))
    found = float(np.sqrt(12.0 * max(0.0, moments[-2 if ways == 3 else -1])))
    return found if found > _FIT * rest else rest


def _elements(patches: Mapping[str, range]) -> Index:
    """Return the boundary elements of some patches."""
    spans = (np.arange(span.start, span.stop) for span in patches.values())
    return np.concatenate([np.empty(0, dtype=np.int64), *spans])
