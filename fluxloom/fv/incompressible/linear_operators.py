r"""Operators of collocated finite volumes that are exact for linear fields on every mesh.

Those of `fluxloom.fv.incompressible.operators` are so only where each face stands across the middle of the line between
its elements. Elsewhere the two vectors

.. math:: k = n - \frac{v}{n \cdot v}, \qquad s = x_f - \frac{x_i + x_j}{2}

say by how much it does not; ``v`` leads from one element to the other, ``n`` is the normal, ``x_f`` the centre of the
face. With gradients ``g`` of the cells that are exact for linear fields, and their mean at a face,

.. math:: \frac{\partial q}{\partial n} = \frac{q_j - q_i}{n \cdot v} + k \cdot \bar g, \qquad
          q_f = \frac{q_i + q_j}{2} + s \cdot \bar g

are exact too, and by Gauss's theorem with them divergence and gradient. The flux of a product, ``u_n q``, needs the
second moments ``C`` of the face beside it: ``A (n \cdot \nabla u) C g``. Warped faces are triangles, whose area vectors
differ: with what `fluxloom.mesh.geometry.metrics` tells of them all of this is exact there too.

*Gradients* are least squares of the differences across the faces of a cell with weights ``A / |v|``: on right-angled
cells, however thin, all directions count alike. Faces at which nothing is known (walls, for the pressure) may leave a
direction that the others hardly settle. There they count a quarter, with the difference that the gradients of the
neighbours have; all of a direction is theirs where no face settles it (in the corner of walls). What corrects the faces
are *mean gradients*: twice the mean over a cell and those across its faces, by volume. Four differences settle the
gradient of a tetrahedron just so, and what is made of it alone feeds oscillations.

*Boundary elements* are at the centre of their face, or at the foot of the perpendicular to it, where their value is
that of the cell behind, changed along the normal alone (outflows, planes of symmetry, given fluxes). Beyond planes of
symmetry lies the image of the cell behind: differences across them, half of those to the image, count twice, and means
over neighbours have the gradient of the image, ``R g`` with ``R = I - 2 n n^T``, of a velocity ``R g R``.

References
----------
H. Jasak: *Error analysis and estimation for the finite volume method*. PhD thesis, Imperial College 1996, sec. 3.3
(corrected normal derivatives). H. Nishikawa: *Beyond interface gradient: a general principle for constructing diffusion
schemes*. AIAA 2010-5093. F. Haider, J.-P. Croisille, B. Courbet: *Stability analysis of the cell centered finite-volume
MUSCL method on unstructured grids*. Numer. Math. 113, 2009 (why gradients from four neighbours do not suffice).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.declare.parts import refresh_host
from fluxloom.fv.geometry.volumes import ControlVolumes, Family, Sides, warps_of
from fluxloom.fv.incompressible.operators import Operators
from fluxloom.mesh.geometry.metrics import TENSOR

__all__ = ["ORTHOGONAL", "LinearOperators", "obliqueness", "once_warped", "stored"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ORTHOGONAL = 1e-4
"""What `obliqueness` of a mesh is taken for none: an angle, and a distance as a part of that of two elements."""

_WELL_SETTLED = 0.65
"""Part of the least squares over all sides of a cell that the known ones have where they alone count."""

_LENT = 0.25
"""What unknown sides count elsewhere, with the difference that neighbours have: with nothing, noise grows at walls."""

_UNSETTLED = 1e-2
"""The same where no cell near by has more: with less they do not settle a direction."""

_NOTHING = 1e-7
"""Root of an eigenvalue of the least squares, as a part of the largest, in a direction in which a cell has no sides."""

_DAMPED = 2.0
"""Of the flux that carries values to the middle of faces, see `LinearOperators.shares`."""

_LEVELS = 3
"""From how far away a gradient that is not settled is fetched."""

_FAR = _LEVELS + 1.0
"""Level of cells that reach none."""


def obliqueness(volumes: ControlVolumes) -> float:
    """Return how far faces are from standing across the line between two elements, of this rank.

    The largest sine of the angle of ``n`` and ``v``, or distance of the face's centre from that line in the plane of
    the face as a part of ``|v|``, or what a face is warped as a part of ``A |v|``; no more than `ORTHOGONAL` is none.

    ``max(|v x n| / |v|, |s_t| / |v|, |T| / (A |v|))``, with ``s_t`` the part of ``s`` in the plane of the face.
    """
    if not len(volumes.faces):
        return 0.0
    ways, normals, inner = volumes.ways, volumes.normals, volumes.interior
    length = np.linalg.norm(ways, axis=1)
    angle = np.linalg.norm(_across(ways, normals), axis=1) / length
    aside = volumes.arms[:inner] - 0.5 * ways[:inner]
    aside -= (np.einsum("ij,ij->i", aside, normals[:inner]) / volumes.spacing[:inner])[:, None] * ways[:inner]
    warped, tensors = once_warped(volumes)
    twist = np.abs(tensors).max(axis=(1, 2), initial=0.0) / (volumes.area * length)[warped]
    found = angle.max(), (np.linalg.norm(aside, axis=1) / length[:inner]).max(initial=0.0), twist.max(initial=0.0)
    return float(max(found))


def once_warped(volumes: ControlVolumes) -> tuple[Index, Array]:
    """Return which faces are warped, ``(m,)``, and ``T_kn = sum A_tk y_n`` of their triangles, ``(m, 3, 3)``."""
    rows, tensors = warps_of(volumes)
    return rows, tensors.reshape(-1, 3, 9)[:, :, :3]


def stored(volumes: ControlVolumes, values: Array) -> Array:
    """Return values of the owned cells ``(owned,)``, and those that other ranks have of theirs. Collective."""
    found = np.zeros((volumes.cells, 1))
    found[: values.size, 0] = values
    refresh_host(volumes.shared.comm, volumes.shared.cells, found)
    return found[:, 0]


def _across(vectors: Array, normals: Array) -> Array:
    """Return the parts of vectors across normals."""
    return vectors - np.einsum("ij,ij->i", vectors, normals)[:, None] * normals


@dataclass(frozen=True, eq=False)
class LinearOperators:
    """The corrections of one quantity.

    Attributes
    ----------
    operators
        Those that are corrected.
    feet, known : (boundary elements,)
        Which have their value at the foot of the perpendicular, and which have one that gradients may use.
    mirrors : (boundary elements,)
        Which of both are in planes of symmetry.
    """

    operators: Operators
    feet: Mask
    known: Mask
    mirrors: Mask
    _kept: list[Array] = field(default_factory=list)

    @property
    def volumes(self) -> ControlVolumes:
        """The control volumes."""
        return self.operators.volumes

    @property
    def _sides(self) -> Sides:
        return self.operators.sides

    # ------------------------------------------------------------------------------------- faces
    @cached_property
    def ways(self) -> Array:
        """``v``, from the first element to the second, ``(faces, d)``."""
        cv = self.volumes
        found, normals = cv.ways, cv.normals
        foot = np.flatnonzero(self._all(self.feet, False))
        found[foot] -= _across(found[foot], normals[foot])
        return found

    @cached_property
    def tangents(self) -> Array:
        """``k = n - v / (n . v)``, ``(faces, d)``; zero behind boundary elements that are not known."""
        normals = self.volumes.normals
        found = normals - self.ways / np.einsum("ij,ij->i", self.ways, normals)[:, None]
        found[~self._all(self.known, True)] = 0.0
        return found

    @cached_property
    def skews(self) -> Array:
        """``s = x_f - (x_i + x_j) / 2``, ``(faces, d)``; at a boundary ``x_f - x_b`` from the boundary element."""
        cv = self.volumes
        inner = np.arange(len(cv.faces)) < cv.interior
        return np.where(inner, 1.0, 0.0)[:, None] * (cv.arms - 0.5 * self.ways) + np.where(inner, 0.0, 1.0)[:, None] * (
            cv.ways - self.ways
        )

    def shares(self) -> Array:
        """Return ``b = DAMPED v . n / (|v| A)``, ``(faces,)``.

        A viscosity ``b |q|`` goes with the flux ``q . g`` that carries values to faces.

        It acts on what the difference of two elements has beside ``v . g``, nothing of linear fields. Without it values
        that are carried to the middle of skewed faces grow.
        """
        cv = self.volumes
        found = _DAMPED * np.einsum("ij,ij->i", self.ways, cv.normals) / (np.linalg.norm(self.ways, axis=1) * cv.area)
        return np.where(np.arange(len(cv.faces)) < cv.interior, found, 0.0)

    def moments(self, passed: Mask) -> Array:
        """Return ``A C = int (x - x_f) (x - x_f)^T dA``, ``(faces, d, d)``, zero at the boundary where nothing passes.

        Parameters
        ----------
        passed : (boundary elements,)
            Through which something does.
        """
        cv = self.volumes
        if cv.moments is not None:
            found = cv.moments()
        elif cv.dimension == 2:
            along = np.stack([-cv.areas[:, 1], cv.areas[:, 0]], axis=1)
            found = along[:, :, None] * along[:, None, :] / 12.0
        else:
            found = np.zeros((len(cv.faces), 3, 3))
        return found * (cv.area * self._all(passed, True))[:, None, None]

    def warps(self, passed: Mask, given: Array, pulsating: Mask | None = None) -> tuple[Index, Array]:
        """Return which faces are warped, of those through which something passes, and ``(G, p, W)``, ``(m, 29)``.

        ``W`` is what their triangles have, see `fluxloom.mesh.geometry.metrics`. Of the velocity through the face ``p``
        is ``1 / A``, and 0 where it is given; there ``G`` is what it has beside that at the centre.

        Parameters
        ----------
        passed : (boundary elements,)
            Through which something does.
        given : (boundary elements, d, d)
            Derivatives along the boundary of velocities that are given there, ``du_k / dx_n``.
        pulsating : (boundary elements,)
            At which these are those of the flow, as what is given there changes in time; none by default.
        """
        cv = self.volumes
        rows, tensors = warps_of(cv)
        kept = self._all(passed, True)[rows]
        rows, tensors = rows[kept], tensors[kept]
        if not rows.size:
            return rows, np.empty((0, 2 + TENSOR))
        found = np.zeros((rows.size, 2 + TENSOR))
        found[:, 2:] = tensors
        free = self._all(self.feet if pulsating is None else self.feet | pulsating, True)[rows]
        found[:, 1] = free / cv.area[rows]
        at = np.flatnonzero(~free)
        once = tensors[at].reshape(-1, 3, 9)[:, :, :3]
        found[at, 0] = np.einsum("fkn,fkn->f", once, given[rows[at] - cv.interior]) / cv.area[rows[at]]
        return rows, found

    def halves(self) -> Family:
        """Return the means of both cells, faces by cells; at a boundary that of the cell behind."""
        inner = np.arange(len(self.volumes.faces)) < self.volumes.interior
        return self.operators.two_sided(np.where(inner, 0.5, 1.0), np.where(inner, 0.5, 0.0))

    @cached_property
    def _mirrored(self) -> Mask:
        """Which sides are planes of symmetry."""
        return self._all(self.mirrors, False)[self._sides.face]

    def _all(self, outer: Mask, inside: bool) -> Mask:
        """Return something of all faces: of those between cells, and of those at boundary elements."""
        return np.concatenate([np.full(self.volumes.interior, inside), outer])

    # ------------------------------------------------------------------------------------- gradients
    def _squares(self, counted: Mask) -> tuple[Array, Array]:
        """Return what the differences across sides count ``(sides, d)``, and the least squares of the cells."""
        cv, sides, d = self.volumes, self._sides, self.volumes.dimension
        way = self.ways[sides.face] * sides.sign[:, None]
        weight = cv.area[sides.face] / np.linalg.norm(way, axis=1) * counted[sides.face]
        weight[self._mirrored] *= 2.0
        terms = weight[:, None] * way
        return terms, sides.sum((terms[:, :, None] * way[:, None, :]).reshape(-1, d * d)).reshape(-1, d, d)

    @cached_property
    def _settled(self) -> tuple[Array, Array, Array]:
        """Directions in which the sides of a cell are alike, ``(cells, d, d)``, and back; what the known ones settle.

        In the columns of the first the least squares over all sides are the identity, those over the known ones are
        diagonal with the third ``(cells, d)``.
        """
        _, whole = self._squares(np.ones(len(self.volumes.faces), dtype=bool))
        _, known = self._squares(self._all(self.known, True))
        scale = np.sqrt(np.einsum("cii->ci", whole))
        scale = np.where(scale > 0.0, scale, 1.0)
        value, vector = np.linalg.eigh(whole / (scale[:, :, None] * scale[:, None, :]))
        root = np.sqrt(np.maximum(value, 0.0))
        there = root > _NOTHING * root[:, -1:]
        inverse = np.where(there, 1.0 / np.where(there, root, 1.0), 0.0)
        white = vector * inverse[:, None, :] / scale[:, :, None]
        back = vector * root[:, None, :] * scale[:, :, None]
        part, turn = np.linalg.eigh(np.einsum("cji,cjk,ckl->cil", white, known, white))
        return white @ turn, back @ turn, part

    @property
    def _levels(self) -> Array:
        """From how far away a gradient is fetched, ``(cells,)``: 0, not at all. Collective at its first use.

        Cells that are well settled are its source. Where there is none within reach, those that are settled at all.
        """
        if not self._kept:  # a cached property would hold the lock of all ranks that are threads
            least = self._settled[2].min(axis=1, initial=1.0)
            level = np.where(least < _WELL_SETTLED, _FAR, 0.0)
            level = self._spread(level)
            level[(level == _FAR) & (least > _UNSETTLED)] = 0.0
            self._kept.append(self._spread(level))
        return self._kept[0]

    def _spread(self, level: Array) -> Array:
        """Return the levels of the cells across whose sides there are lower ones. Collective."""
        sides = self._sides
        for now in range(1, _LEVELS + 1):
            near = self._lower(level, now)
            level = np.where((level == _FAR) & (sides.sum(near.astype(np.float64)) > 0), now, level)
        return level

    def _lower(self, level: Array, now: int) -> Mask:
        """Return the sides across which the level is lower than a number. Collective."""
        cv, sides = self.volumes, self._sides
        return ~sides.outside & (stored(cv, level)[np.minimum(sides.other, cv.cells - 1)] < now)

    @property
    def side_gradients(self) -> Array:
        """Gradient in a cell of a difference of one across a side, ``M^{-1} w_j v_j``, ``(sides, d)``. Collective.

        Where some is `borrowed`, the unknown sides count too, with what is across from there.
        """
        white, _, part = self._settled
        lends = ((self._levels > 0.0) & (self._levels < _FAR))[:, None]
        counted = np.where(lends, part + _LENT * (1.0 - part), np.where(part > _UNSETTLED, part, np.inf))
        inverse = 1.0 / counted
        weights, _ = self._squares(self._all(self.known, True))
        cell = self._sides.cell
        turned = np.einsum("nji,nj->ni", white[cell], weights) * inverse[cell]
        return np.einsum("nij,nj->ni", white[cell], turned)

    def gradients(self) -> Family:
        """Return ``g = sum_j g_j (q_j - q)`` of cells and boundary elements, cells by elements; see `borrowed` too."""
        values = self.side_gradients
        return self._sides.rows(values, -self._sides.sum(values))

    def cell_gradients(self) -> Family:
        """Return `gradients` where known boundary elements have the value 0, but for mirrors, cells by cells."""
        values = self.side_gradients
        own = self._sides.sum(np.where(self._mirrored[:, None], 0.0, values))
        return self._sides.rows(values, -own, kept=~self._sides.outside)

    def outlet_gradients(self) -> Family:
        """Return what values of boundary elements add to `cell_gradients`, cells by elements."""
        sides, values = self._sides, self.side_gradients
        kept = sides.outside & ~self._mirrored
        return sides.rows(values, np.zeros((sides.cells, values.shape[1])), np.zeros(sides.cells, dtype=bool), kept)

    def face_gradients(self) -> Family:
        """Return the gradient of what has given derivatives along ``v / (n . v)`` at faces, cells by faces."""
        sides, cv = self._sides, self.volumes
        spacing = np.einsum("ij,ij->i", self.ways, cv.normals)
        return Family(sides.offsets, sides.face, self.side_gradients * (spacing[sides.face] * sides.sign)[:, None])

    def borrowed(self) -> list[tuple[Index, Family]]:
        """Return what is added to gradients that are not settled: cells, and rows of all cells by cells. Collective.

        One after the other: the first take from cells whose gradient is settled, the next from these. Entries are
        ``(d, d)``.
        """
        sides, level = self._sides, self._levels
        white, back, part = self._settled
        found: list[tuple[Index, Family]] = []
        for now in range(1, _LEVELS + 1):
            able = self._lower(level, now)
            count = sides.sum(able.astype(np.float64))
            cells = np.flatnonzero(level == now)
            if not self._anywhere(cells.size > 0):
                break
            kept = able & (level[sides.cell] == now)
            lent = _LENT * (1.0 - part)
            free = (lent / (part + lent))[sides.cell] / np.maximum(count, 1.0)[sides.cell, None]
            values = np.einsum("nij,nj,nkj->nik", white[sides.cell], free, back[sides.cell])
            none = np.zeros(sides.cells, dtype=bool)
            values = values.reshape(len(values), -1)
            found.append((cells, sides.rows(values, np.zeros((sides.cells, values.shape[1])), none, kept)))
        return found

    def means(self) -> Family:
        """Return the mean over a cell and those across its faces, ``sum Omega_j q_j / sum Omega_j``, cells by cells."""
        cv, sides = self.volumes, self._sides
        size, own = self._sizes, cv.volumes[: sides.cells]
        whole = own + sides.sum(size)
        return sides.rows(size / whole[sides.cell], own / whole, kept=~sides.outside)

    def images(self) -> tuple[Index, Family]:
        """Return cells at planes of symmetry, and ``(w, n)`` of images, ``w = Omega / sum Omega`` in `means`."""
        cv, sides, there = self.volumes, self._sides, self._mirrored
        whole = cv.volumes[: sides.cells] + sides.sum(self._sizes)
        share = self._sizes / whole[sides.cell]
        values = np.concatenate([share[:, None], cv.normals[sides.face]], axis=1)
        none, own = np.zeros(sides.cells, dtype=bool), np.zeros((sides.cells, 1 + cv.dimension))
        return np.flatnonzero(sides.sum(there.astype(np.float64))), sides.rows(values, own, none, there)

    @property
    def _sizes(self) -> Array:
        """Volumes of the cells across sides, and of images."""
        cv, sides = self.volumes, self._sides
        across = np.where(sides.outside, sides.cell, np.minimum(sides.other, cv.cells - 1))
        return cv.volumes[across] * (~sides.outside | self._mirrored)

    def _anywhere(self, here: bool) -> bool:
        return any(self.volumes.shared.comm.allgather(here))

    # ------------------------------------------------------------------------------------- cells
    def carried(self, flat: Mask) -> Family:
        """Return what gradients add to Gauss's theorem with the values of `Operators`, cells by cells, ``(d, d)``.

        ``sum (A n_k s_l + T_kl) g_l / Omega``, ``T`` of warped faces; boundary elements that are not known have the
        value of the cell behind, carried to the centre of the face. In cells that are `flat` it is the gradient itself.
        """
        cv, sides = self.volumes, self._sides
        outward = cv.areas[sides.face] * sides.sign[:, None]
        reach = self.skews.copy()
        reach[cv.interior :] = np.where(self.known[:, None], self.skews[cv.interior :], cv.ways[cv.interior :])
        share = np.where(sides.outside, 1.0, 0.5)
        terms = outward[:, :, None] * reach[sides.face][:, None, :]
        rows, twisted = once_warped(cv)
        if rows.size:
            place = np.full(len(cv.faces), -1, dtype=np.int64)
            place[rows] = np.arange(rows.size)
            some = np.flatnonzero(place[sides.face] >= 0)
            terms[some] += sides.sign[some][:, None, None] * twisted[place[sides.face[some]]]
        values = (terms * share[:, None, None]).reshape(share.size, -1)
        values[flat[sides.cell]] = 0.0
        own = sides.sum(values)
        own[flat] = cv.volumes[: sides.cells][flat, None] * np.eye(cv.dimension).reshape(-1)
        return self.operators.per_volume(sides.rows(values, own, kept=~sides.outside))
