"""What boundaries are given: conditions that are values, of the velocity and of scalars, and the tables of them.

The checks of what is given at places and for patches are those of the velocity and of scalars alike.

A condition either gives what is at the faces of a patch, or has a formula that makes it of what is in the cells behind.
Kernels take the formulas of a flow as one constant, and hold those alone; an element has the place of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError, SolverError, did_you_mean
from fluxloom.core.strategies import Strategy, is_ours
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.values.value import Value, has_values, value_of, vector_of

__all__ = [
    "ConditionTable", "FaceCondition", "Given", "PatchPlaces", "changes", "check_patches", "condition_table",
    "formulas_in_order", "given_values", "moves", "parts_of", "rows_of", "sliding",
]  # fmt: skip

Array = npt.NDArray[np.float64]
_ALONG = 0.1
"""Part of the speed of a wall that may be along the normals of its faces, which are not those of a curved surface."""
_FEW = 4
"""Numbers that a message shows."""

Given = (
    float | str | Value | Sequence[float | str | Value] | Callable[[Array], npt.ArrayLike]
    | Callable[[Array, float], npt.ArrayLike]
)  # fmt: skip
"""A number, or a component each of a vector; see `fluxloom.values.value.value_of`."""


def check_patches(what: str, volumes: ControlVolumes, names: Iterable[str]) -> None:
    """Raise `SolverError` if a name is not that of a patch; ``what`` has the names."""
    for name in names:
        if name not in volumes.patches:
            known = ", ".join(volumes.patches) or "none"
            raise SolverError(f"{what}: no patch {name!r}{did_you_mean(name, volumes.patches)} (patches: {known})")


def parts_of(given: Given, components: int = 0, what: str = "") -> tuple[Value, ...]:
    """Return what is given as values: of a vector of so many components each, else one.

    Raises
    ------
    SolverError
        If there are others than as many, or a formula is wrong.
    """
    try:
        return vector_of(given, components, what) if components else (value_of(given, what),)
    except CaseError as error:
        raise SolverError(f"{what}: {error}" if what else str(error)) from None


def changes(given: Given | None) -> bool:
    """Return whether what is given changes in time."""
    if given is None or isinstance(given, int | float):
        return False
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        return any(changes(one) for one in given)
    return value_of(given).in_time


def moves(velocity: Any) -> bool:
    """Return whether the velocity that a wall is given is another one than 0."""
    return callable(velocity) or has_values(velocity) or bool(np.any(velocity))


def given_values(what: str, given: Given, places: Array, components: int = 0, time: float = 0.0) -> Array:
    """Return what is given at places ``(n, d)``: one value for all, or a function of the places.

    Parameters
    ----------
    what
        Has it, for messages.
    given
        A number, or a vector of so many ``components``; or a function that returns ``(n,)`` or ``(n, components)``.
    components
        Of the velocity; 0: there is a number at each place.
    time
        Of values that change.

    Raises
    ------
    SolverError
        If there is not one finite value for each place.
    """
    if has_values(given):
        found = [part.at(places, time, what) for part in parts_of(given, components, what)]
        return np.stack(found, axis=1) if components else found[0]
    shape = (len(places), components) if components else (len(places),)
    found: Any = given(places) if callable(given) else given  # pyright: ignore[reportCallIssue]
    try:
        values = np.asarray(found, dtype=np.float64)
        if values.shape not in (shape, shape[1:]):
            raise ValueError
    except (TypeError, ValueError):
        wanted = f"a vector of {components} components" if components else "a number"
        got = repr(found) if np.size(found) <= _FEW else f"what has the shape {np.shape(found)}"
        raise SolverError(
            f"{what}: {wanted} is wanted, or a function that returns {shape} numbers for the places {places.shape}, "
            f"not {got}"
        ) from None
    values = np.broadcast_to(values, shape)
    if not (finite := np.isfinite(values)).all():
        if not callable(given):
            raise SolverError(f"{what}: {given!r} is not finite")
        first = int(np.flatnonzero(~finite.reshape(len(places), -1).all(axis=1))[0])
        raise SolverError(f"{what}: {values[first]} at the place {tuple(places[first].tolist())} is not finite")
    return values


def sliding(what: str, velocity: Array, areas: Array) -> Array:
    """Return velocities of a wall without what is along its normals, ``u - (u . n) n``, ``(n, d)``: nothing passes it.

    Raises
    ------
    SolverError
        If that is more than a tenth of the largest speed: the wall would sweep through the fluid.
    """
    normals = areas / np.maximum(np.linalg.norm(areas, axis=1), np.finfo(float).tiny)[:, None]
    through, speed = np.einsum("ij,ij->i", velocity, normals), np.linalg.norm(velocity, axis=1)
    if (wrong := np.abs(through) > _ALONG * speed.max(initial=0.0)).any():
        raise SolverError(
            f"{what}: a wall moves along itself, and at {int(wrong.sum())} of {wrong.size} places it has a part along "
            f"its normal, up to {np.abs(through).max():.3g}; an inflow lets fluid through"
        )
    return velocity - through[:, None] * normals


Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PatchPlaces:
    """Where a condition says what it gives: the faces of a patch.

    Attributes
    ----------
    what
        Has them, for messages.
    places, areas : (n, d)
        Centres, and area vectors outward.
    spacing : (n,)
        Distance of the cell behind, along the normal; 0 at points of meshes that have the velocity there.
    """

    what: str
    places: Array
    areas: Array
    spacing: Array

    def numbers(self, given: Given) -> Array:
        """Return a number at each face, ``(n,)``, of one for all or a function of the places."""
        return given_values(self.what, given, self.places)

    def vectors(self, given: Given) -> Array:
        """Return a vector at each face, ``(n, d)``, of one for all or a function of the places."""
        return given_values(self.what, given, self.places, self.places.shape[1])


class FaceCondition(Strategy):
    """What happens at the faces of a patch; a member of a family of them is a frozen dataclass."""

    @property
    def formula(self) -> Any:
        """What kernels take of it, a record with a ``__call__`` that is a ``@func``; None: it gives what is there."""
        return self if callable(self) else None

    @property
    def prescribed(self) -> Given | None:
        """What `rows` has at the start, where that is a value which may change in time; None: it stays."""
        return None

    def rows(self, faces: PatchPlaces) -> Array:
        """Return what is given at each face, or the numbers that the formula is given; zeros by default.

        Those of a face depend on that face alone: a rank has a part of them.
        """
        if self.formula is None:
            kind = type(self).__name__
            raise SolverError(f"{faces.what}: {kind} gives nothing: it needs rows, or a __call__ that is a @func")
        return np.zeros(())


@dataclass(frozen=True, eq=False)
class ConditionTable:
    """What happens at the boundary elements of a flow.

    Attributes
    ----------
    formulas
        Of the conditions that have one, each once, in an order that is the same on all ranks.
    kinds : (n,) int32
        Place of the formula of each element; -1: what is there is given.
    given : (n,) or (n, d)
        What is given, or the numbers that the formula is given; at the start.
    varies : (n,)
        Elements at which that changes in time.
    """

    formulas: tuple[Any, ...]
    kinds: npt.NDArray[np.int32]
    given: Array
    varies: Mask

    @property
    def prescribed(self) -> Mask:
        """Elements at which all is given, ``(n,)``."""
        return self.kinds < 0

    def where(self, chosen: Iterable[bool]) -> Mask:
        """Return the elements of some of the formulas, ``(n,)``."""
        return np.array([*chosen, False])[self.kinds]


def formulas_in_order(formulas: Iterable[Any]) -> tuple[Any, ...]:
    """Return formulas, each once, in an order that is the same for all that have the same."""
    return tuple(sorted(
        dict.fromkeys(formulas), key=lambda one: (type(one).__module__, type(one).__qualname__, repr(one))
    ))  # fmt: skip


def rows_of(condition: FaceCondition, faces: PatchPlaces, components: int = 0) -> Array:
    """Return the numbers of a condition at faces, ``(n,)`` or ``(n, components)``; of others they are checked."""
    shape = (len(faces.places), components) if components else (len(faces.places),)
    found = np.asarray(condition.rows(faces), dtype=np.float64)
    if not is_ours(condition) and (found.shape not in (shape, ()) or not np.isfinite(found).all()):
        kind = type(condition).__name__
        raise SolverError(f"{faces.what}: {kind}: rows: finite numbers {shape} are wanted, not {found!r}")
    return np.broadcast_to(found, shape)


def condition_table(
    what: str, volumes: ControlVolumes, boundaries: Mapping[str, FaceCondition], family: type[FaceCondition],
    ours: str, components: int = 0,
) -> ConditionTable:  # fmt: skip
    """Return the table of some boundaries.

    Parameters
    ----------
    what
        Begins messages: of the velocity nothing.
    volumes
        The control volumes.
    boundaries
        Patch to its condition; each patch needs one.
    family, ours
        Of the conditions, and those of this package, for messages.
    components
        Of what is given; 0: there is a number at each element.

    Raises
    ------
    SolverError
        If a patch has no boundary, a boundary no patch, or what is given does not fit.
    """
    check_patches(f"{what}boundaries", volumes, boundaries)
    for name in volumes.patches:
        if not isinstance(boundaries.get(name), family):
            raise SolverError(f"{what}patch {name!r} has no boundary: give {ours}, not {boundaries.get(name)!r}")
    formulas = formulas_in_order(one.formula for one in boundaries.values() if one.formula is not None)
    count, areas = volumes.elements - volumes.cells, volumes.areas[volumes.interior :]
    given = np.zeros((count, components) if components else count)
    kinds, varies = np.full(count, -1, dtype=np.int32), np.zeros(count, dtype=bool)
    for name, elements in volumes.patches.items():
        condition, place = boundaries[name], slice(elements.start - volumes.cells, elements.stop - volumes.cells)
        if condition.formula is not None:
            kinds[place] = formulas.index(condition.formula)
        faces = PatchPlaces(
            f"{what}patch {name!r}", volumes.centres[elements.start : elements.stop], areas[place],
            volumes.spacing[volumes.interior :][place],
        )  # fmt: skip
        given[place], varies[place] = rows_of(condition, faces, components), changes(condition.prescribed)
    return ConditionTable(formulas, kinds, given, varies)
