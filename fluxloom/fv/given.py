"""What is given at places, and for patches: the checks that boundaries of the velocity and of scalars share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError, SolverError, did_you_mean
from fluxloom.fv.volumes import ControlVolumes
from fluxloom.values.value import Value, has_values, value_of, vector_of

__all__ = ["Given", "changes", "check_patches", "given_values", "moves", "parts_of", "sliding"]

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
    """Return velocities of a wall, ``(n, d)``, without what is along its area vectors: nothing passes it.

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
