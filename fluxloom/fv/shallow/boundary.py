"""Boundary conditions of the shallow-water equations, and the tables that their kernels read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.shallow.boundary_states import (
    GivenDischarge,
    GivenLevel,
    IncidentWave,
    Mirrored,
    SameWater,
    WaterState,
)
from fluxloom.fv.shallow.kernels import WALL
from fluxloom.mesh.ranks.bind import Mesh
from fluxloom.values.value import Given, Value, value_of

__all__ = [
    "WINDOW", "Boundary", "BoundaryTables", "Discharge", "Incident", "Level", "Outflow", "Wall", "boundary_tables",
]  # fmt: skip

WINDOW = 32
"""Samples of each series that the kernels have at a time."""


class Boundary:
    """A boundary condition; a member is a frozen dataclass with the formula of what is beyond its faces."""

    @property
    def formula(self) -> WaterState:
        """What is beyond a face."""
        raise NotImplementedError(f"{type(self).__name__} has no formula: give it the property")

    @property
    def driven(self) -> tuple[Given, float, float] | None:
        """The level and the surface at rest that the formula is given, and when the boundary turns into a wall."""
        return None


@dataclass(frozen=True)
class Wall(Boundary):
    """Nothing passes; water slides along it."""

    @property
    def formula(self) -> WaterState:
        """The inside, turned round."""
        return Mirrored()


@dataclass(frozen=True)
class Outflow(Boundary):
    """Transmissive: beyond the boundary it is as in the cell behind it."""

    @property
    def formula(self) -> WaterState:
        """The inside."""
        return SameWater()


@dataclass(frozen=True)
class _Driven(Boundary):
    """What a series drives until some time, from when on the boundary is a wall."""

    series: Given
    until: float = float("inf")

    @property
    def driven(self) -> tuple[Given, float, float]:
        """The series."""
        return self.series, 0.0, self.until


@dataclass(frozen=True)
class Level(_Driven):
    """The surface is prescribed, the velocity follows from the invariant ``u + 2 c`` that leaves.

    Attributes
    ----------
    series
        Surface elevation: a number, a formula in x, y and t, a function of places and the time, or another
        `fluxloom.values.value.Value`, as `fluxloom.values.tables.TimeSeries`.
    until
        Time from which on the boundary is a wall.
    """

    @property
    def formula(self) -> WaterState:
        """The level."""
        return GivenLevel()


@dataclass(frozen=True)
class Discharge(_Driven):
    """What comes in is prescribed, the depth follows from the invariant ``u + 2 c`` that leaves.

    Attributes
    ----------
    series
        Discharge into the water through a metre of the patch, m^2/s, below 0 out of it; as of a `Level`. Out of it
        comes no more than at Froude number 1.
    until
        Time from which on the boundary is a wall.
    """

    @property
    def formula(self) -> WaterState:
        """The discharge."""
        return GivenDischarge()


@dataclass(frozen=True)
class Incident(Boundary):
    """A wave comes in on still water and whatever arrives from inside leaves.

    Without a series it is an absorbing boundary for water that is at rest far away.

    Attributes
    ----------
    series
        Surface elevation of the incoming wave alone; as of a `Level`.
    still
        Surface of the water at rest.
    until
        Time from which on the boundary is a wall.
    """

    series: Given = 0.0
    still: float = 0.0
    until: float = float("inf")

    @property
    def formula(self) -> WaterState:
        """The wave."""
        return IncidentWave()

    @property
    def driven(self) -> tuple[Given, float, float]:
        """The series and the surface at rest."""
        return self.series, self.still, self.until


@dataclass(frozen=True, eq=False)
class BoundaryTables:
    """What the boundary kernels look up.

    Attributes
    ----------
    formulas
        Of the flow: a wall, and those of its boundaries, the same on all ranks.
    kinds, rows : (n_boundary,) int32
        Place of the formula of each face that the rank owns, and its row in the tables.
    series
        Of each row that has one: the patch, what gives the surface there, and the faces.
    places : (n_boundary, 2)
        Centres of the faces.
    ends : (2 * rows,) float64
        Of each row: when it turns into a wall, and the surface at rest.
    """

    formulas: tuple[WaterState, ...]
    kinds: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int32]
    series: tuple[tuple[str, Value, npt.NDArray[np.int32]], ...]
    places: npt.NDArray[np.float64]
    ends: npt.NDArray[np.float64]

    def entering(
        self, most: npt.NDArray[np.float64], bed: npt.NDArray[np.float64], gravity: float
    ) -> npt.NDArray[np.float64]:
        """Return what may come in through faces, m^2/s: the discharge, or below a level ``sqrt(g) h^(3/2)``.

        Parameters
        ----------
        most, bed : (n_boundary,)
            Largest discharge or level, and the bed in the cell behind.
        gravity
            m/s^2.
        """
        height, found = np.maximum(most - bed, 0.0), np.zeros(len(most))
        given = np.array([one.imposed for one in self.formulas])[self.kinds]
        amount = np.where(given, np.maximum(most, 0.0), np.sqrt(gravity * height) * height)
        for _, _, faces in self.series:
            found[faces] = amount[faces]
        return found

    def check(self, time: float) -> None:
        """Raise `SolverError` if a series has no value at a time."""
        for name, one, faces in self.series:
            one.at(self.places[faces] if one.in_space else np.zeros((1, 2)), time, f"boundaries.{name}")

    def window(self, begin: float, spacing: float) -> npt.NDArray[np.float64]:
        """Return the values at each face at `WINDOW` times from ``begin`` on, ``(n_boundary, WINDOW)``."""
        times, found = begin + spacing * np.arange(WINDOW), np.zeros((len(self.rows), WINDOW))
        for name, one, faces in self.series:
            found[faces] = one.course(self.places[faces], times, f"boundaries.{name}")
        return found


def boundary_tables(mesh: Mesh, boundaries: Mapping[str, Boundary]) -> BoundaryTables:
    """Return the tables for a mesh; a face of which nothing is said is a wall.

    Raises
    ------
    MeshError
        For a patch that the mesh does not have.
    SolverError
        For what is no boundary.
    """
    kinds = np.full(mesh.boundary.size, WALL, dtype=np.int32)
    rows = np.zeros(mesh.boundary.size, dtype=np.int32)
    formulas: list[WaterState] = [Mirrored()]
    driven: list[tuple[str, Value, npt.NDArray[np.int32]]] = []
    ends: list[tuple[float, float]] = []
    for name, boundary in boundaries.items():
        if not isinstance(boundary, Boundary):
            known = "Wall(), Outflow(), Level(...), Discharge(...) or Incident(...)"
            raise SolverError(f"boundaries: {name}: {known}, not {boundary!r}")
        patch = mesh.patches[name]
        faces = patch.indices[: patch.size]  # those of the halo follow
        if boundary.formula not in formulas:
            formulas.append(boundary.formula)
        kinds[faces] = formulas.index(boundary.formula)
        if boundary.driven is not None:
            rows[faces] = len(driven)
            given, still, until = boundary.driven
            driven.append((name, value_of(given, f"boundaries.{name}"), faces))
            ends.append((until, still))
    places = mesh.boundary_centres.read().astype(np.float64)
    return BoundaryTables(
        tuple(formulas), kinds, rows, tuple(driven), places, np.array(ends or [(np.inf, 0.0)]).reshape(-1)
    )
