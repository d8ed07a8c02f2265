"""Interpolation and spreading with NumPy: what the reference device does, and what other forms are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.lbm.immersed.markers.data import MarkerData
from fluxloom.lbm.immersed.markers.spreading import support_places

__all__ = ["plain_interpolate", "plain_spread"]


def _entries(
    markers: MarkerData, first: npt.NDArray[Any], weights: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the cells of each marker and their weights, ``(n, points**d)``."""
    n, d = first.shape
    points = weights.shape[1] // d
    values = weights.reshape(n, d, points)
    product = values[:, 0]
    for axis in range(1, d):
        product = (product[:, :, None] * values[:, axis, None, :]).reshape(n, -1)
    return support_places(markers.fields.box, first.astype(np.int64), points), product


def plain_interpolate(markers: MarkerData, first: npt.NDArray[Any], weights: npt.NDArray[Any]) -> None:
    """Set the samples of markers: the velocity with half the force, and ``rho - 1``."""
    fields, d = markers.fields, markers.dimensions
    cells, w = _entries(markers, first, weights)
    above = fields.above.read().reshape(-1)
    u = fields.u.read().reshape(-1, d) + 0.5 * fields.force.read().reshape(-1, d) / (1.0 + above[:, None])
    values = np.concatenate([u, above[:, None]], axis=1)
    markers.sample.write(np.einsum("np,npa->na", w, values[cells]))


def plain_spread(markers: MarkerData, first: npt.NDArray[Any], weights: npt.NDArray[Any]) -> None:
    """Add the pulls of markers to the force of the cells."""
    fields, d = markers.fields, markers.dimensions
    cells, w = _entries(markers, first, weights)
    force = fields.force.read().reshape(-1, d)
    for a in range(d):
        np.add.at(force[:, a], cells.ravel(), (w * markers.pull.read()[:, a, None]).ravel())
    fields.force.write(force.reshape(*fields.force.set.shape, d))
