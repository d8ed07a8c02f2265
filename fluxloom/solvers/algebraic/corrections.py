"""What `fluxloom.solvers.incompressible.corrections` does, as products with sparse matrices and sums of vectors.

==================  =====  =====  ===============================================================================
part (3D)           SpMV   AXPY   made of
==================  =====  =====  ===============================================================================
gradients           27     0      9 gradients, twice their means over neighbours
fluxes              43     1      9 at faces, 9 moments, 3 of ``u_s s``, 6 of viscosities, 3 of ``s . g``; 3 + 1 entries
                                  (``E_D`` at each step), 9 sums; a pointwise pass for ``b |q|``
faces               7      2      3 Gamma, 3 of the last gradient of the pressure, 1 of its derivative at faces
source              1      1      M_s, times -1/dt
face velocity       2      1      alpha G_s, over alpha
pressure gradients  9      0      3 gradients, twice their means
correction          12     3      3 of Gauss's theorem, 9 that gradients add
==================  =====  =====  ===============================================================================

and, where faces of a cell do not settle its gradient, 9 products and 3 sums for each level of cells that borrow; for
planes of symmetry along axes 24 products, of images in means of gradients; for warped faces 45 products.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.geometry.volumes import Family
from fluxloom.fv.incompressible.component_kernels import bound
from fluxloom.fv.incompressible.face_forces import outward_areas
from fluxloom.fv.incompressible.linear_operators import LinearOperators
from fluxloom.linalg.krylov.three_kernels import Algebra
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.solvers.algebraic.matrices import components
from fluxloom.solvers.flow_spaces import Space
from fluxloom.solvers.incompressible.corrections import FlowCorrections
from fluxloom.solvers.incompressible.flow import Incompressible

__all__ = ["AlgebraicCorrections"]

Array = npt.NDArray[np.float64]
_Pairs = dict[tuple[int, int], SparseMatrix]
_Triples = dict[tuple[int, int, int], SparseMatrix]
_NOTHING = 1e-14
"""Entry of a matrix that is none."""


class AlgebraicCorrections:
    """The matrices of the corrections of a flow, and the loops with them.

    Parameters
    ----------
    flow, known
        Whose, and its corrections, whose state is taken.
    algebra
        Makes loops.
    """

    def __init__(self, flow: Incompressible, known: FlowCorrections, algebra: Algebra) -> None:
        self.flow, self.make, self.d = flow, algebra, flow.dimension
        d, ctx, spaces = self.d, flow.context, flow.spaces
        linear, pressure = flow.matrices.velocity_operators, flow.matrices.pressure_operators
        self.means = SparseMatrix(known.means.rows.pattern, known.means.rows.values)
        self.velocity_images, self.pressure_images = self._images(linear)
        self.gradients = self._parts(spaces.cells, linear.gradients(), spaces.elements)
        self.borrowed = self._borrowed(linear)
        self.lent = [ctx.dat(flow.cells, name=f"lent_{k}") for k in range(d)]
        self.once = [ctx.dat(flow.cells, name=f"once_{k}") for k in range(d * d)]
        self._velocity(linear, known)
        self._faces(linear, pressure, known)
        self._pressure(pressure)

    # ------------------------------------------------------------------------------------- matrices
    def _parts(self, rows: Space, found: Family, target: Space) -> tuple[SparseMatrix, ...]:
        return components(self.flow.context, rows.rows(found, target, "corrections"))

    def _diagonal(self, values: Array) -> tuple[SparseMatrix, ...]:
        """Return matrices that multiply values at faces with numbers ``(faces, m)``."""
        count, spaces = len(values), self.flow.spaces
        found = Family(np.arange(count + 1), np.arange(count, dtype=np.int32), values)
        return self._parts(spaces.faces, found, spaces.faces)

    def _halves(self, linear: LinearOperators, values: Array) -> tuple[SparseMatrix, ...]:
        """Return means of both cells times numbers ``(faces, m)``."""
        half = linear.halves()
        row = np.repeat(np.arange(half.offsets.size - 1), np.diff(half.offsets))
        spaces = self.flow.spaces
        return self._parts(spaces.faces, half._replace(values=half.values[:, None] * values[row]), spaces.cells)

    def _borrowed(self, linear: LinearOperators) -> list[tuple[SparseMatrix, ...]]:
        spaces = self.flow.spaces
        return [self._parts(spaces.cells, found, spaces.cells) for _, found in linear.borrowed()]

    def _images(self, linear: LinearOperators) -> tuple[dict[tuple[int, int], SparseMatrix], ...]:
        """Return what images beyond planes of symmetry add to means of gradients: of a velocity, of a scalar.

        Diagonal matrices between the components, ``sum w R x R`` and ``sum w R``; those that are zero are left out.
        Collective.
        """
        ctx, spaces, d, cells = self.flow.context, self.flow.spaces, self.d, linear.operators.sides.cells
        _, images = linear.images()
        row = np.repeat(np.arange(cells), np.diff(images.offsets))
        share, normal = images.values[:, 0], images.values[:, 1:]
        turn = np.eye(d) - 2.0 * normal[:, :, None] * normal[:, None, :]
        twice, found = np.einsum("n,nik,njm->nijkm", share, turn, turn).reshape(-1, d * d, d * d), []
        for both in (twice, share[:, None, None] * turn):
            size = both.shape[1]
            summed = np.zeros((cells, size, size))
            np.add.at(summed, row, both)
            most = ctx.comm.reduce(np.abs(summed).max(axis=0, initial=0.0).ravel(), "max").reshape(size, size)
            found.append({
                (i, j): self._parts(spaces.cells, Family(
                    np.arange(cells + 1), np.arange(cells, dtype=np.int32), summed[:, i, j, None]), spaces.cells)[0]
                for i, j in np.argwhere(most > _NOTHING).tolist()
            })  # fmt: skip
        return tuple(found)

    def _velocity(self, linear: LinearOperators, known: FlowCorrections) -> None:
        flow, d, ctx = self.flow, self.d, self.flow.context
        cv, sides = flow.volumes, flow.matrices.operators.sides
        self.normals = self._halves(linear, cv.normals)
        passed = np.concatenate([np.ones(cv.interior, dtype=bool), known.passed()])
        moments = linear.moments(known.passed()).reshape(-1, d * d)
        self.moments = self._diagonal(moments)
        area = cv.area[:, None]
        self.skews, self.tangents = self._diagonal(area * linear.skews), self._diagonal(-area * linear.tangents)
        self.along = self._diagonal(area * cv.normals)
        self.bound = flow.spaces.faces.dat(linear.shares(), "b")
        self.extra = ctx.dat(flow.faces, name="nu_s.extra")
        self.raised = ctx.dat(flow.faces, known.raised.read(), "nu_s.raised")
        self.through = self._diagonal(linear.skews * passed[:, None])
        share = -sides.sign * np.where(sides.outside, 1.0, 0.5)
        pattern = sides.rows(share, np.ones(sides.cells), kept=~sides.outside)
        self.pattern = flow.spaces.elements.rows(pattern, flow.spaces.cells, "oblique").pattern
        self.swept, self.twisted = self._warped(linear, known)
        inverse = flow.spaces.faces.entry_rows(self.pattern, self._entries(share), "E_q")
        self.entries = SparseMatrix(inverse.pattern, inverse.values)
        self.sums = [
            SparseMatrix(self.pattern, ctx.dat(self.pattern.entries, np.zeros(self.pattern.entries.size), f"q_{m}"))
            for m in range(d)
        ]
        self.g = [[ctx.dat(flow.cells, name=f"g_{k}{m}") for m in range(d)] for k in range(d)]
        self.w = [ctx.dat(flow.faces, name=f"w_{m}") for m in range(d)]
        self.q = [ctx.dat(flow.faces, name=f"q_{m}") for m in range(d)]
        self.u_oblique = ctx.dat(flow.faces, name="u_s.oblique")

    def _warped(self, linear: LinearOperators, known: FlowCorrections) -> tuple[_Pairs, _Triples]:
        """Return what `warped_fluxes` multiplies: velocities ``(k, m)``, gradients ``(k, n, m)``; ``m = d`` passes."""
        flow, cv, d = self.flow, self.flow.volumes, self.d
        if known.warped is None:
            return {}, {}
        rows, tensors = known.warps(linear)
        warp = np.zeros((len(cv.faces), d, 9))
        warp[rows] = tensors[:, 2:].reshape(-1, d, 9)
        once, scale = warp[:, :, :d], np.zeros(len(cv.faces))
        scale[rows] = tensors[:, 1]
        place = [[d + min(n, m) * (2 * d - 1 - min(n, m)) // 2 + max(n, m) for m in range(d)] for n in range(d)]
        twice = warp[:, :, place] + once[:, :, None, :] * linear.skews[:, None, :, None]
        found = np.concatenate([twice, (scale[:, None, None] * once)[..., None]], axis=3)
        inner = np.arange(len(cv.faces)) < cv.interior
        share, other = np.where(inner, 0.5, 0.0), np.where(inner, 0.5, 1.0)
        once = once.reshape(-1, d * d)
        over = linear.operators.two_sided(share[:, None] * once, other[:, None] * once)
        velocity = self._parts(flow.spaces.faces, over, flow.spaces.elements)
        whole = np.zeros(len(cv.faces))
        whole[rows] = tensors[:, 0]
        self.given = flow.spaces.faces.dat(whole, "given")
        slopes = self._halves(linear, found.reshape(len(cv.faces), -1))
        return (
            {(k, m): velocity[d * k + m] for k in range(d) for m in range(d)},
            {(k, n, m): slopes[(d * k + n) * (d + 1) + m] for k in range(d) for n in range(d) for m in range(d + 1)},
        )

    def _sweep(self, u: Sequence[Dat]) -> list[Loop]:
        """Return the loops to what warped faces add, behind all that has been made of ``q`` before."""
        make = self.make
        loops = [make.spmv_onto(matrix, u[k], self.q[m]) for (k, m), matrix in self.swept.items()]
        into = [*self.q, self.u_oblique]
        loops += [make.spmv_onto(matrix, self.g[k][n], into[m]) for (k, n, m), matrix in self.twisted.items()]
        return [*loops, make.axpy(make.one, self.given, self.u_oblique)] if loops else []

    def _entries(self, share: Array) -> Family:
        """Return the matrix from values at faces to the entries of `pattern`, over minus the volume of the row."""
        sides = self.flow.matrices.operators.sides
        share = share / self.flow.volumes.volumes[sides.cell]
        inside, counts = ~sides.outside, np.diff(sides.offsets)
        before = np.concatenate([[0], np.cumsum(inside)])
        own = np.arange(sides.cells) + before[sides.offsets[:-1]]
        lengths = np.ones(sides.cells + before[-1], dtype=np.int64)
        lengths[own] = counts
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        columns, values = np.empty(offsets[-1], dtype=np.int32), np.empty(offsets[-1])
        place = offsets[own][sides.cell] + np.arange(sides.cell.size) - sides.offsets[:-1][sides.cell]
        columns[place], values[place] = sides.face, share
        other = offsets[:-1][np.setdiff1d(np.arange(lengths.size), own)]
        columns[other], values[other] = sides.face[inside], share[inside]
        return Family(offsets, columns, values)

    def _faces(self, linear: LinearOperators, pressure: LinearOperators, known: FlowCorrections) -> None:
        flow, damping = self.flow, self.flow.matrices.damping[:, None]
        self.oblique = self._halves(linear, pressure.tangents)
        (self.rest,) = self._diagonal(1.0 - damping)
        (self.undamped,) = self._diagonal(1.0 / damping)
        found = flow.spaces.cells.rows(outward_areas(flow.matrices), flow.spaces.faces, "M_s")
        self.outward = SparseMatrix(found.pattern, found.values)
        ctx, scale = flow.context, 1.0 / flow.impulse
        self.steep = ctx.dat(flow.faces, known.steep.read() * scale, "t")
        self.parts = ctx.dat(flow.faces, name="oblique pressure")
        mean = known.pressure.mean.read() * scale
        self.gp = [ctx.dat(flow.cells, np.ascontiguousarray(mean[:, k]), f"gp_{k}") for k in range(self.d)]
        self.raw = [ctx.dat(flow.cells, name=f"gp_raw_{k}") for k in range(self.d)]

    def _pressure(self, pressure: LinearOperators) -> None:
        spaces = self.flow.spaces
        self.face_gradients = self._parts(spaces.cells, pressure.face_gradients(), spaces.faces)
        self.pressure_borrowed = self._borrowed(pressure)
        self.carried = self._parts(spaces.elements, self.flow.matrices.carried_pressure(), spaces.cells)

    # ------------------------------------------------------------------------------------- loops
    def _settled(self, g: Sequence[Dat], borrowed: Sequence[tuple[SparseMatrix, ...]]) -> list[Loop]:
        """Complete gradients by those of neighbours."""
        make, d, loops = self.make, self.d, []
        for matrices in borrowed:
            for k in range(d):
                loops.append(make.spmv(matrices[d * k], g[0], self.lent[k]))
                loops += [make.spmv_onto(matrices[d * k + m], g[m], self.lent[k]) for m in range(1, d)]
            loops += [make.axpy(make.one, self.lent[k], g[k]) for k in range(d)]
        return loops

    def _means(
        self, g: Sequence[Dat], into: Sequence[Dat], images: dict[tuple[int, int], SparseMatrix]
    ) -> list[Loop]:
        """Take the means of gradients twice."""
        make, loops = self.make, []
        for values, means in ((g, self.once), (self.once, into)):
            loops += [make.spmv(self.means, value, mean) for value, mean in zip(values, means, strict=False)]
            loops += [make.spmv_onto(matrix, values[j], means[i]) for (i, j), matrix in images.items()]
        return loops

    def velocity(self, u: Sequence[Dat], us: Dat, nus: Dat) -> list[Loop]:
        """Return the loops from a velocity to the entries that its gradients are multiplied with."""
        make, d, loops = self.make, self.d, []
        for k in range(d):
            loops += [make.spmv(self.gradients[m], u[k], self.g[k][m]) for m in range(d)]
            loops += self._settled(self.g[k], self.borrowed)
        every = [g for component in self.g for g in component]
        loops += self._means(every, every, self.velocity_images)
        for m in range(d):
            loops.append(make.spmv(self.normals[0], self.g[0][m], self.w[m]))
            loops += [make.spmv_onto(self.normals[k], self.g[k][m], self.w[m]) for k in range(1, d)]
        loops.append(make.spmv(self.through[0], self.w[0], self.u_oblique))
        loops += [make.spmv_onto(self.through[m], self.w[m], self.u_oblique) for m in range(1, d)]
        for m, q in enumerate(self.q):
            loops.append(make.spmv(self.skews[m], us, q))
            loops += [make.spmv_onto(self.moments[d * m + n], self.w[n], q) for n in range(d)]
        loops.append(Loop(bound, self.flow.faces, self.bound, *[*self.q, None][:3], self.extra))
        loops.append(make.axpy_apart(make.one, nus, make.one, self.extra, self.raised))
        for m, q in enumerate(self.q):
            loops += [make.spmv_onto(self.tangents[m], self.raised, q), make.spmv_onto(self.along[m], self.extra, q)]
        loops += self._sweep(u)
        loops += [make.spmv(self.entries, q, self.sums[m].values) for m, q in enumerate(self.q)]
        return loops

    def added(self, k: int, r: Dat) -> list[Loop]:
        """Return the loops that add the corrections to a component of the right-hand side."""
        return [self.make.spmv_onto(self.sums[m], self.g[k][m], r) for m in range(self.d)]

    def source(self, u: Sequence[Dat], us: Dat, gamma: Sequence[SparseMatrix], minus_dt: Global) -> list[Loop]:
        """Return the loops to the velocities at faces before the projection."""
        make = self.make
        return [
            make.spmv(self.rest, self.steep, self.parts),
            *(make.spmv_onto(matrix, g, self.parts) for matrix, g in zip(self.oblique, self.gp, strict=True)),
            make.spmv(gamma[0], u[0], us),
            *(make.spmv_onto(matrix, v, us) for matrix, v in zip(gamma[1:], u[1:], strict=True)),
            make.axpy(make.one, self.u_oblique, us),
            make.axpy(minus_dt, self.parts, us),
        ]

    def slopes(self, slope: SparseMatrix, p: Dat, us: Dat, minus_dt: Global) -> list[Loop]:
        """Return the loops from the pressure to the velocities at faces, and to its gradients."""
        make, loops = self.make, []
        loops += [make.spmv(slope, p, self.parts), make.axpy(minus_dt, self.parts, us)]
        loops.append(make.spmv(self.undamped, self.parts, self.steep))
        loops += [make.spmv(m, self.steep, g) for m, g in zip(self.face_gradients, self.raw, strict=True)]
        loops += self._settled(self.raw, self.pressure_borrowed)
        return loops + self._means(self.raw, self.gp, self.pressure_images)

    def corrected(self, k: int, g: Dat) -> list[Loop]:
        """Return the loops that add to a component of the gradient of the pressure."""
        return [self.make.spmv_onto(self.carried[self.d * k + m], self.gp[m], g) for m in range(self.d)]

