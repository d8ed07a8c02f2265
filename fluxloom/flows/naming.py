"""Errors that say which part of a flow they are about: ``body.wing.center: ...``, in scripts and case files alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fluxloom.core.errors import MeshError, SolverError

__all__ = ["KeyedError", "named"]


class KeyedError(SolverError):
    """An error in a part of a flow.

    Parameters
    ----------
    key
        Which part, as case files call it: ``"body.wing.center"``.
    text
        What is wrong with it.
    """

    def __init__(self, key: str, text: str) -> None:
        super().__init__(f"{key}: {text}")
        self.key, self.text = key, text


@contextmanager
def named(key: str) -> Iterator[None]:
    """Make errors ones of a part of a flow; those within, of a part of it, are called ``key.part``."""
    try:
        yield
    except KeyedError as error:
        raise KeyedError(f"{key}.{error.key}", error.text) from None
    except (SolverError, MeshError) as error:
        raise KeyedError(key, str(error)) from None
