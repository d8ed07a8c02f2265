"""Symmetric Gauss-Seidel sweeps through the linearised equations of a compressible flow, colour by colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import RaggedMap
from fluxloom.dsl.declare.sets import Subset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.factors import factor
from fluxloom.fv.compressible.implicit import blocks, clear, destruction_blocks, lessen, relax
from fluxloom.fv.geometry.cell_faces import CompressibleGeometry
from fluxloom.fv.geometry.sweep_order import front_order
from fluxloom.fv.geometry.volumes import Family
from fluxloom.graph.colour_rows import colour_rows
from fluxloom.graph.csr import Csr

if TYPE_CHECKING:
    from fluxloom.solvers.compressible.flow import CompressibleFlow

__all__ = ["Sweeps"]


class _Neighbours:
    """Some of the sides of cells, in rows: the elements across, the faces and which way they point."""

    def __init__(self, flow: CompressibleFlow, near: RaggedMap, sides: RaggedMap, sign: Any) -> None:
        self.near, self.sides, self.sign = near, sides, sign
        self.flow = flow

    @classmethod
    def of(cls, flow: CompressibleFlow, found: CompressibleGeometry, beyond: bool) -> _Neighbours:
        """Return the sides to cells that other ranks own, or else the others."""
        cv, elements, faces = flow.volumes, flow.spaces.elements, flow.spaces.faces
        columns = found.signs.columns
        away = (columns >= cv.owned) & (columns < cv.cells)
        kept = away if beyond else ~away
        offsets = np.concatenate([[0], np.cumsum(kept)])[found.signs.offsets].astype(np.int64)
        name = "beyond" if beyond else "within"
        near = elements.rows(Family(offsets, columns[kept], found.signs.values[kept]), elements, name)
        side = Family(offsets, found.sides.columns[kept], found.sides.values[kept])
        return cls(flow, near.pattern, elements.rows(side, faces, f"{name}.faces").pattern, near.entries)

    def arguments(self, w: Dat, z: Dat) -> tuple[Any, ...]:
        """Return what kernels take: states across, increments across, faces, signs."""
        return w[self.near], z[self.near], self.flow.face[self.sides], self.sign


class Sweeps:
    r"""Solves with the linearisation of first order, approximately; see `fluxloom.fv.compressible.implicit`.

    Cells are coloured so that no face joins two of one colour. A sweep solves the rows of one colour after the other,
    forward and backward, each with the increments that the others have then. On several ranks colours are those of a
    rank, and the increments of other ranks those of the sweep before, in the first one zero: one exchange a sweep.

    Parameters
    ----------
    flow
        Whose linearisation.
    sweeps
        Forward and backward ones.
    wavefront
        One sweep alone, forward and backward in the order of fronts (`fluxloom.fv.geometry.sweep_order`) instead of
        colours, with blocks that make it solve the lines of a mesh exactly (`fluxloom.fv.compressible.factors`).

    Attributes
    ----------
    rate
        ``V / dt`` of the elements, of which the linearisation is made.
    block
        Inverses of the diagonal blocks.
    r, z
        What `solve` takes, a residual, and what it finds, increments of the states `CompressibleFlow.w`.
    rest
        Of several ranks what others leave of the residual, found before each sweep but the first; else None.
    """

    forgets = ("rate", "block", "r", "z", "rest")

    def __init__(self, flow: CompressibleFlow, sweeps: int, wavefront: bool = False) -> None:
        context, d, nv = flow.context, flow.dimension, flow.components
        self.flow, self.sweeps, self.wavefront = flow, sweeps, wavefront
        self._gas: dict[str, Any] = {"gas": flow.gas, "closure": flow.scheme.turbulence, "nv": nv, "d": d}
        self._beyond: _Neighbours | None = None
        if context.distributed:
            found = CompressibleGeometry.of(flow.volumes)
            self._within = _Neighbours.of(flow, found, beyond=False)
            self._beyond = _Neighbours.of(flow, found, beyond=True)
        else:
            self._within = _Neighbours(flow, flow.near, flow.sides, flow.sign)
        self.colours = self._turns() if wavefront else self._colours()
        self.rate = context.dat(flow.elements, name="rate")
        self.block = context.dat(
            flow.elements, name="block", shape=((2 + d) ** 2 + flow.turbulent,), layout=flow.w.layout
        )
        self.r, self.z = (
            context.dat(flow.elements, name=name, shape=(nv,), layout=flow.w.layout) for name in ("r", "increment")
        )
        self._chains()

    def _chains(self) -> None:
        flow, z, nv = self.flow, self.z, self.flow.components
        self._clear = Loop(clear, flow.elements, z, nv=nv)
        self._sweep = self._pass(self.r, "sweep")
        self._lessen, self._next, self.rest = None, self._sweep, None
        if self._beyond is not None:
            self.rest = flow.context.dat(flow.elements, name="rest", shape=(nv,), layout=flow.w.layout)
            self._lessen = Loop(lessen, flow.elements, flow.w, *self._beyond.arguments(flow.w, z), self.r, self.rest,
                                **self._gas)  # fmt: skip
            self._next = self._pass(self.rest, "sweep.rest")

    def _pass(self, r: Dat, name: str) -> Chain:
        """Return a sweep forward and backward, whose last colour is solved once."""
        order = [*self.colours, *reversed(self.colours[:-1])]
        return Chain([Loop(relax, colour, self.flow.w, *self._within.arguments(self.flow.w, self.z), self.block, r,
                           self.z, **self._gas) for colour in order], fuse=False, name=name)  # fmt: skip

    def solve(self) -> None:
        """Find increments `z` of the residual `r`, from none."""
        self._clear()
        for sweep in range(1 if self.wavefront else self.sweeps):
            if sweep and self._lessen is not None:
                self._lessen()
            (self._next if sweep else self._sweep)()

    def _colours(self) -> list[Subset]:
        flow, within = self.flow, self._within.near
        size = flow.elements.size
        offsets = within.offsets[: size + 1]
        columns = within.indices[: int(offsets[-1])]
        inside = np.zeros(size, dtype=bool)
        inside[flow.spaces.inside] = True
        row = np.repeat(np.arange(size), np.diff(offsets))
        kept = inside[columns]
        starts = np.concatenate([[0], np.cumsum(np.bincount(row[kept], minlength=size))]).astype(np.int64)
        colours = colour_rows(Csr(starts, np.ascontiguousarray(columns[kept]))).colours
        colours[~inside] = -1
        count = max(flow.context.comm.allgather(int(colours.max(initial=0)) + 1))
        return [flow.context.subset(flow.elements, colours == c, f"colour{c}") for c in range(count)]

    def _turns(self) -> list[Subset]:
        """Return the cells of each turn of the fronts, and keep the order of all elements as `turn`."""
        flow, elements = self.flow, self.flow.spaces.elements
        whole = np.full(flow.volumes.elements, np.inf)
        order = front_order(flow.volumes)
        whole[: order.size] = order
        self.turn = elements.dat(whole, "turn")
        mine = whole[elements.owned]
        count = max(flow.context.comm.allgather(int(order.max(initial=-1)) + 1))
        return [flow.context.subset(flow.elements, mine == k, f"turn{k}") for k in range(count)]

    def linearise(self) -> list[Loop]:
        """Return the loops that find the diagonal blocks of the flow's states and gradients, and of `rate`."""
        flow, w = self.flow, self.flow.w
        loops = [Loop(blocks, flow.elements, w, w[flow.near], flow.kind[flow.near], flow.par[flow.near],
                      flow.face[flow.sides], flow.sign, self.rate, flow.volume, self.block,
                      states=flow.formulas, **self._gas)]  # fmt: skip
        if flow.turbulent:
            constants = {"gas": flow.gas, "closure": flow.scheme.turbulence, "d": flow.dimension}
            loops += [Loop(destruction_blocks, flow.elements, w, flow.gradient, flow.distance, flow.volume, self.block,
                           **constants)]  # fmt: skip
        if self.wavefront:
            near, far, side, sign = self._within.arguments(w, self.block)
            loops += [Loop(factor, turn, w, near, side, sign, self.turn, self.turn[self._within.near], far, self.block,
                           **self._gas) for turn in self.colours[1:]]  # fmt: skip
        return loops
