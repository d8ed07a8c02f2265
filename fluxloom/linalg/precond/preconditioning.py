"""Preconditioners as they are given, of other packages too: made, applied, and blamed where they are wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.linalg.operators import BuiltPreconditioner, Operator, Preconditioner, Step

__all__ = ["applied", "made_for", "place_of"]


def made_for(given: Any, matrix: Operator, who: str) -> BuiltPreconditioner | None:
    """Return the preconditioner of a matrix: what a recipe makes, or what is given where that is none. Collective.

    Parameters
    ----------
    given
        A recipe, what one has built, or None.
    matrix
        Of the system.
    who
        What wants it, for messages.

    Raises
    ------
    SolverError
        If it is neither, or its methods are not those that are asked for.
    """
    if isinstance(given, Preconditioner) and type(given).build is Preconditioner.build:
        raise SolverError(
            f"{who}: {type(given).__name__} ({place_of(type(given))}) has no method build(matrix), which makes it"
        )
    recipe = hasattr(given, "build") and not isinstance(given, type)
    made = _called(given.build, who, "build(matrix)", matrix) if recipe else given
    fits = hasattr(made, "apply") and hasattr(made, "diagonal") and not isinstance(made, type)
    if recipe and not fits:
        raise SolverError(
            f"{who}: {_named(given.build)} returned {made!r}: an object with an attribute `diagonal` "
            "(a dat, or None) and a method `apply(r, z)`, which returns a list of loops, is wanted"
        )
    if made is not None and not fits:
        raise SolverError(f"{who}: a preconditioner such as Jacobi() is wanted, not {given!r}")
    return cast("BuiltPreconditioner | None", made)


def applied(preconditioner: BuiltPreconditioner, r: Dat, z: Dat, who: str) -> list[Step]:
    """Return the steps that form ``z = B r``.

    Raises
    ------
    SolverError
        If ``apply`` does not take two vectors, or returns anything else than steps.
    """
    found = _called(preconditioner.apply, who, "apply(r, z)", r, z)
    steps = list(found) if isinstance(found, Iterable) else None
    if steps is None or not all(isinstance(step, Step) for step in steps):
        raise SolverError(f"{who}: {_named(preconditioner.apply)} returned {found!r}: a list of loops is wanted")
    return steps


def place_of(thing: type | Callable[..., Any]) -> str:
    """Return file and line of a class or a function, for messages."""
    try:
        return f"{Path(inspect.getsourcefile(thing) or '').name}:{inspect.getsourcelines(thing)[1]}"
    except (OSError, TypeError):  # typed in, or no Python
        return thing.__module__


def _called(method: Callable[..., Any], who: str, wanted: str, *arguments: Any) -> Any:
    """Call a method of somebody's class, which may have other parameters than it is called with."""
    try:
        inspect.signature(method).bind(*arguments)
    except TypeError as error:
        name = wanted.partition("(")[0]
        raise SolverError(
            f"{who}: {_named(method)} has the parameters {inspect.signature(method)}, but is called as {wanted} "
            f"({error}): write def {name}(self, {wanted.partition('(')[2]}"
        ) from None
    return method(*arguments)


def _named(method: Callable[..., Any]) -> str:
    """Return class, name, file and line of a method."""
    owner = type(getattr(method, "__self__", method)).__name__
    return f"{owner}.{method.__name__} ({place_of(method)})"
