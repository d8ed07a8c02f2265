"""What a compressible flow is given that depends on the time: numbers of its boundaries, and sources.

Each stage of a step has the values of its own time, which keeps the order of the scheme. The loops that compute them
are in the chains of the step, before the residual of the stage; the host says the times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.boundary import BoundaryCondition, FarField, SupersonicInlet, SymmetryPlane
from fluxloom.fv.compressible.free_stream import FreeStreamInTime
from fluxloom.fv.compressible.patches import Changing
from fluxloom.fv.time_schemes import SSPRK3, Stages
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom.solvers.flow_spaces import Patched, patch_elements
from fluxloom.values.value import Value

if TYPE_CHECKING:
    from fluxloom.values.given_on import GivenOn

__all__ = ["GivenValues", "stage_times"]

_ACROSS = 1e-6
"""Cosine of the angle between a direction and the normal of a plane along it, at most."""


def stage_times(stages: Stages) -> list[float]:
    """Return the time at which each stage of a scheme begins, as a part of the step: ``t_{k+1} = b_k t_k + c_k``."""
    times = [0.0]
    for _, b, c in stages[:-1]:
        times.append(b * times[-1] + c)
    return times


class Driven(Patched, Protocol):
    """A flow whose boundary elements have numbers, `par`, that its boundaries give."""

    boundaries: Mapping[str, BoundaryCondition]
    scheme: CompressibleScheme
    par: Dat


class GivenValues:
    """The values of a flow that depend on the time; most flows have none.

    Parameters
    ----------
    flow
        With its sets, and the numbers of its boundaries.
    changing
        Of each patch the numbers that change, and the parameter that they begin with.
    """

    def __init__(self, flow: Driven, changing: Mapping[str, Sequence[tuple[int, Changing]]]) -> None:
        self.flow = flow
        # guarded steps have stages of their own
        self._moments = max(len(flow.scheme.time.stages), len(SSPRK3().stages))
        self._place: Dat | None = None
        self.given: list[GivenOn] = []
        self._check_symmetry()
        for name, parts in changing.items():
            boundary = flow.boundaries[name]
            if isinstance(boundary, FarField) and boundary.vortex is not None:
                raise SolverError(f"patch {name!r}: vortex: the stream depends on the time; leave the vortex out")
            over = patch_elements(flow, name)
            for slides in (False, True):
                mine = [(first, part) for first, part in parts if part.sliding is slides]
                if mine:
                    self._on_patch(name, over, mine, slides)

    def _check_symmetry(self) -> None:
        """Raise `SolverError` where a free stream crosses a plane of symmetry at any time. Collective."""
        cv, given = self.flow.volumes, self.flow.boundaries.items()
        streams = [way.state for _, way in given if isinstance(way, FarField | SupersonicInlet)]
        ways = [stream.ways() for stream in streams if isinstance(stream, FreeStreamInTime)]
        for name in [name for name, one in given if isinstance(one, SymmetryPlane) and ways]:
            span, offset = cv.patches[name], cv.interior - cv.cells
            normals = cv.normals[span.start + offset : span.stop + offset]
            across = np.abs(normals @ np.concatenate(ways).T).max(initial=0.0)
            if max(self.flow.context.comm.allgather(float(across))) > _ACROSS:
                raise SolverError(
                    f"patch {name!r}: the free stream, which depends on the time, crosses this plane of symmetry, or "
                    "will; change its angles, or take another condition"
                )

    def _on_patch(self, name: str, over: Set, parts: Sequence[tuple[int, Changing]], slides: bool) -> None:
        """Keep the numbers of the faces of a patch up to date."""
        flow, cv = self.flow, self.flow.volumes
        span = cv.patches[name]
        components = [first + k for first, part in parts for k in range(len(part.values))]
        weights = np.ones((cv.elements, len(components)))
        weights[span.start : span.stop] = np.concatenate([part.weights for _, part in parts], axis=1)
        normals = None
        if slides:
            normals = np.zeros((cv.elements, cv.dimension))
            normals[cv.cells :] = cv.normals[cv.interior :]
            normals = normals[flow.spaces.elements.owned]
        weighted = any(part.weighted for _, part in parts)
        self._keep(
            over, [value for _, part in parts for value in part.values], f"boundary.{name}",
            out=flow.par, components=components, least=[least for _, part in parts for least in part.least],
            weights=weights[flow.spaces.elements.owned] if weighted else None, normals=normals,
        )  # fmt: skip

    @property
    def place(self) -> Dat:
        """The places of the elements."""
        if self._place is None:
            self._place = self.flow.spaces.elements.dat(self.flow.volumes.centres, "place")
        return self._place

    def over_cells(self, name: str, values: Sequence[Value], out: Dat) -> None:
        """Keep values of the cells up to date in a dat of the elements."""
        flow = self.flow
        over = flow.context.subset(flow.elements, flow.spaces.inside[: flow.volumes.owned], "cells")
        self._keep(over, values, name, out=out)

    def _keep(self, over: Set, values: Sequence[Value], name: str, **how: Any) -> None:
        """Keep values of a set up to date, where any depends on the time; ``how`` as `GivenOn` takes it."""
        from fluxloom.values.given_on import GivenOn

        given = GivenOn(self.flow.context, over, self.place, values, name, moments=self._moments, **how)
        if given.depends_on_time:
            self.given.append(given)

    def loops(self, stage: int) -> list[Loop]:
        """Return what computes the values of a stage, before its residual."""
        return [loop for given in self.given for loop in given.loops(stage)]

    def prepare(self, time: float, step: float = 0.0, stages: Stages = ((1.0, 0.0, 1.0),)) -> None:
        """Say the times of the stages of a step from a time on; of the first one alone by default."""
        for given in self.given:
            given.prepare([time + part * step for part in stage_times(stages)])

    def check(self) -> None:
        """Raise `SolverError` where a value was not finite or out of range. Collective."""
        if self.given and any(map(float, Global.read_all([one.wrong for one in self.given if one.wrong is not None]))):
            for given in self.given:
                given.check()

    def require_steady(self) -> None:
        """Raise `SolverError` if a value depends on the time, for steps that have none."""
        for given in self.given:
            changing = next(value for value in given.values if value.in_time)
            raise SolverError(
                f"{given.name}: {changing} depends on the time, and steps towards a steady flow have none: make steps "
                "in time (time.end in case files)"
            )
