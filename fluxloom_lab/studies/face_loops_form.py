"""The sets, maps and values of the loops of `fluxloom_lab.studies.face_loops` over a mesh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import Layout
from fluxloom.core.errors import PlanError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import RaggedMap
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.gas import Gas, Sutherland
from fluxloom_lab.studies.face_loops_tables import FaceTables, Weighted

__all__ = ["KINDS", "FaceLoops", "Kind", "Work"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Kind:
    """One of the loops, and how it can run.

    Attributes
    ----------
    name, title
        As K1, and what it computes.
    modes
        Sets that it can run over; the first one is how it is commonly written.
    split
        Whether it can run component by component, a launch each.
    """

    name: str
    title: str
    modes: tuple[str, ...] = ("faces",)
    split: bool = False


KINDS: tuple[Kind, ...] = (
    Kind("K2", "cells to nodes", ("faces", "cells", "nodes"), split=True),
    Kind("K1", "gradients", split=True),
    Kind("K8", "extremes of pressure", ("faces", "cells")),
    Kind("K4", "limiter"),
    Kind("K7", "values at faces"),
    Kind("K5", "reconstruction"),
    Kind("K3", "friction"),
    Kind("flux", "flux of Roe"),
    Kind("K6", "sum of fluxes", split=True),
    Kind("K9", "turbulence coefficients"),
    Kind("K10", "sum of turbulence"),
)
"""In the order in which they run: each takes what those before it have left."""


@dataclass(frozen=True, eq=False)
class Work:
    """A loop in one of its ways.

    Attributes
    ----------
    kind, mode, split
        What it is.
    loops
        Launches, in their order: several where it is split.
    first
        Loops that begin it, as minima from the own value.
    results
        What it leaves, each dat with the set that it is on: ``"elements"``, ``"nodes"`` or ``"faces"``.
    cleared
        What has to be set to a number before.
    flops
        Floating-point operations of a run: additions, multiplications, comparisons and functions count one each.
    """

    kind: Kind
    mode: str
    split: bool
    loops: Sequence[Loop]
    results: Sequence[tuple[str, Dat]]
    first: Sequence[Loop] = ()
    cleared: Mapping[Dat, float] | None = None
    flops: float = 0.0

    @property
    def useful_bytes(self) -> int:
        """Bytes that a run has to move at least; of a split one what its launches read and write."""
        return sum(loop.useful_bytes for loop in (*self.first, *self.loops))

    def __call__(self) -> None:
        """Run it, without clearing what it adds to."""
        for loop in self.first:
            loop()
        for loop in self.loops:
            loop()

    def clear(self) -> None:
        """Set what it adds to to where it begins."""
        for dat, value in (self.cleared or {}).items():
            dat.write(np.full((dat.set.size, *dat.shape), value))


class FaceLoops:
    """Sets, maps, values and loops of a stage over faces, on one rank.

    Parameters
    ----------
    context
        Where it runs.
    tables
        Of the mesh, in the order in which everything is stored.
    gas
        With the viscosity of Sutherland.
    layout
        Of values with several components; the context's default if None.

    Raises
    ------
    PlanError
        If the gas has another viscosity or none.
    """

    def __init__(self, context: Context, tables: FaceTables, gas: Gas, layout: Layout | None = None) -> None:
        if not isinstance(gas.viscosity, Sutherland):
            raise PlanError("loops over faces: a gas with the viscosity of Sutherland is wanted")
        self.context, self.tables, self.gas, self.layout = context, tables, gas, layout
        self.d = tables.area.shape[1]
        self.m, self.nv = self.d + 3, self.d + 2
        self.legs = tables.corners.shape[1]
        self.elements = context.set(tables.elements, "elements")
        self.faces = context.set(len(tables.faces), "faces")
        self.nodes = context.set(tables.nodes, "nodes")
        self.sides = context.map(self.faces, self.elements, tables.faces, "sides")
        self.corners = context.map(self.faces, self.nodes, tables.corners, "corners")
        self._geometry()
        self._values()

    def _geometry(self) -> None:
        t = self.tables
        self.counts = self.context.dat(self.faces, t.counts, "counts")
        self.area, self.arms = self._dat(self.faces, t.area, "area"), self._dat(self.faces, t.arms, "arms")
        self.part = self.context.dat(self.faces, t.part[:, None], "part")
        self.inverse = self.context.dat(self.elements, t.inverse, "inverse")
        self.weight = self.context.dat(self.nodes, t.weight, "weight")

    def _dat(self, over: Set, values: npt.NDArray[Any], name: str) -> Dat:
        return self.context.dat(over, values, name, layout=self.layout)

    def _zeros(self, over: Set, components: int, name: str) -> Dat:
        return self.context.dat(over, name=name, shape=(components,), layout=self.layout)

    def _values(self) -> None:
        m, nv, d = self.m, self.nv, self.d
        self.q, self.nut = self._zeros(self.elements, m, "q"), self._zeros(self.elements, 1, "nut")
        self.node = self._zeros(self.nodes, m, "node")
        self.slope = self._zeros(self.elements, m * d, "slope")
        self.low, self.high = self._zeros(self.elements, 1, "low"), self._zeros(self.elements, 1, "high")
        self.share = self._zeros(self.elements, 1, "share")
        self.raw = [self._zeros(self.faces, m, name) for name in ("left", "right")]
        self.sharp = [self._zeros(self.faces, nv, name) for name in ("sharp_left", "sharp_right")]
        self.friction = self._zeros(self.faces, nv, "friction")
        self.flux, self.res = self._zeros(self.faces, nv, "flux"), self._zeros(self.elements, nv, "residual")
        self.coefficient = self._zeros(self.faces, 2, "coefficient")
        self.diagonal = self._zeros(self.elements, 1, "diagonal")
        self.turbulence = self._zeros(self.elements, 1, "turbulence")
        self.rough = 0.0

    def start(self, states: Array, nut: Array, rough: float = 0.0) -> None:
        """Set states ``(elements, d + 2)``, primitive, and the variable of turbulence ``(elements,)``, in their order.

        ``rough`` is the square of changes of pressure that are not limited.
        """
        order = self.tables.element_order
        q = np.concatenate([states, self.gas.temperature(states)[:, None]], axis=1)[order]
        self.q.write(q)
        self.nut.write(nut[order][:, None])
        self.rough = rough

    def result(self, work: Work) -> Array:
        """Return what a loop has left, in the numbering of the mesh: rows of each dat below each other, flat."""
        orders = {"elements": self.tables.element_order, "faces": self.tables.face_order,
                  "nodes": self.tables.node_order}  # fmt: skip
        parts: dict[str, list[Array]] = {}
        for place, dat in work.results:
            values = np.asarray(dat.read(), dtype=np.float64).reshape(dat.set.size, -1)
            sorted_ = np.empty_like(values)
            sorted_[orders[place]] = values
            parts.setdefault(place, []).append(sorted_)
        return np.concatenate([np.concatenate(found, axis=1).reshape(-1) for found in parts.values()])

    # ------------------------------------------------------------------------------------ rows of neighbours
    def _rows(self, source: Set, target: Set, rows: Weighted, name: str) -> tuple[RaggedMap, Dat]:
        pattern = self.context.ragged(source, target, rows.offsets, rows.columns, name)
        return pattern, self.context.dat(pattern.entries, rows.values, f"{name}.times")

    @cached_property
    def around_nodes(self) -> tuple[RaggedMap, Dat]:
        """Elements of each node, and how often each counts."""
        return self._rows(self.nodes, self.elements, self.tables.around_nodes(), "around_nodes")

    @cached_property
    def around_elements(self) -> tuple[RaggedMap, Dat]:
        """Nodes of each element, and how often it counts there."""
        return self._rows(self.elements, self.nodes, self.tables.around_elements(), "around_elements")

    @cached_property
    def neighbours(self) -> RaggedMap:
        """Elements across the faces of each element."""
        return self._rows(self.elements, self.elements, self.tables.neighbours(), "neighbours")[0]

    def columns(self, dat: Dat, width: int = 1) -> list[Dat]:
        """Return the components of a dat, so many at a time, as dats of their own."""
        values = np.asarray(dat.read()).reshape(dat.set.size, -1)
        return [
            self._dat(dat.set, np.ascontiguousarray(values[:, k : k + width]), f"{dat.name}.{k // width}")
            for k in range(0, values.shape[1], width)
        ]
