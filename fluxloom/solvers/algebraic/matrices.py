"""The matrices of a flow, a scalar one for each component, taken from a solver that exists."""

from __future__ import annotations

import numpy as np

from fluxloom.dsl.context import Context
from fluxloom.fv.geometry.volumes import Family
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.solvers.flow_spaces import Rows
from fluxloom.solvers.incompressible.flow import Incompressible

__all__ = ["AlgebraicMatrices"]


class AlgebraicMatrices:
    """The constant matrices of a step, and ``C`` and ``D``, whose entries change.

    Matrices with the same pattern share its table. Rows of boundary elements are empty: what a product adds to
    their values is nothing.

    Parameters
    ----------
    flow
        Whose matrices they are.

    Attributes
    ----------
    poisson
        ``-L``, cells by cells.
    divergence, gradient, gamma
        ``M_k`` (cells by elements), ``G_k`` of the pressure (elements by cells), ``Gamma_k`` (faces by elements), one
        for each ``k``.
    slope
        ``G_s``, faces by cells.
    convection, diffusion
        ``-Omega^-1 C`` and ``-Omega^-1 D``, elements by elements, with the volumes in them.
    convection_entries, diffusion_entries
        ``E_C`` and ``E_D``, entries by faces, also divided by minus the volume of the row that an entry is in.
    slopes, means
        Of a model: ``G_k`` of the velocity (cells by elements), and the means at faces (faces by cells).
    """

    def __init__(self, flow: Incompressible) -> None:
        context, spaces, known = flow.context, flow.spaces, flow.matrices
        self.poisson = flow.poisson
        self.divergence = components(context, flow.divergence)
        self.gradient = components(context, flow.gradient)
        self.gamma = components(context, flow.gamma)
        self.slope = SparseMatrix(flow.slope.pattern, flow.slope.values)
        pattern = flow.transport.pattern
        self.convection, self.diffusion = (
            SparseMatrix(pattern, context.dat(pattern.entries, np.zeros(pattern.entries.size), name))
            for name in ("convection", "diffusion")
        )
        found = known.operators.entry_faces()
        sides = np.diff(known.operators.pattern[0])
        volumes = flow.volumes.volumes[: sides.size]
        scale = np.repeat(np.repeat(-1.0 / volumes, sides), np.diff(found.offsets))
        self.convection_entries, self.diffusion_entries = (
            _scalar(spaces.faces.entry_rows(pattern, _kept(found, scale, k), name))
            for k, name in enumerate(("E_C", "E_D"))
        )
        self.slopes: tuple[SparseMatrix, ...] = ()
        self.means: SparseMatrix | None = None
        if flow.model is not None:
            slopes = spaces.cells.rows(known.velocity_gradient(), spaces.elements, "slopes")
            self.slopes = components(context, slopes)
            self.means = _scalar(spaces.faces.rows(known.face_means(), spaces.cells, "means"))


def components(context: Context, rows: Rows) -> tuple[SparseMatrix, ...]:
    """Return a scalar matrix for each number that the entries have; all share the pattern."""
    values, pattern = rows.values.read(), rows.pattern
    return tuple(
        SparseMatrix(pattern, context.dat(pattern.entries, np.ascontiguousarray(values[:, k]), f"{pattern.name}_{k}"))
        for k in range(values.shape[1])
    )


def _scalar(rows: Rows) -> SparseMatrix:
    return SparseMatrix(rows.pattern, rows.values)


def _kept(found: Family, scale: np.ndarray, k: int) -> Family:
    """Return one of the matrices of a family times numbers of its entries, without its zeros."""
    values = found.values[:, k] * scale
    kept = values != 0.0
    before = np.concatenate([[0], np.cumsum(kept)])
    return Family(before[found.offsets], found.columns[kept], values[kept])
