"""A valid file."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Sample"]


@dataclass(frozen=True)
class Sample:
    """A valid file as bytes.

    Attributes
    ----------
    name
        What it is, in words.
    file
        The name it has to have.
    data
        Its bytes.
    counted
        Whether the file says how much of everything it has, so that a file that was cut off must be noticed.
    counts
        What is in it: points, cells, and the faces of each patch.
    """

    name: str
    file: str
    data: bytes
    counted: bool = False
    counts: tuple[object, ...] = ()
