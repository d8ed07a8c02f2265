"""The tree of a CGNS file: nodes with a name, a label, an array and children, from either kind of container.

Source: CGNS "Standard Interface Data Structures" (SIDS) and its "SIDS File Mapping".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError

__all__ = ["Array", "Node", "no_array"]

Array = npt.NDArray[Any]


def no_array() -> Array | None:
    """Return what a node without data holds."""
    return None


@dataclass(frozen=True, eq=False)
class Node:
    """One node.

    Attributes
    ----------
    name, label
        Its name, and the kind of thing it is (``"Zone_t"`` ...).
    where
        File and path in the tree, for messages.
    load
        Reads its array: in C order, the axes of the standard reversed, so that the first index of the standard is the
        last one here; None for a node without data.
    children
        The nodes below it.
    """

    name: str
    label: str
    where: str
    load: Callable[[], Array | None] = no_array
    children: tuple[Node, ...] = field(default_factory=tuple)

    def all(self, label: str) -> Iterator[Node]:
        """Yield the children with a label."""
        return (child for child in self.children if child.label == label)

    def first(self, label: str) -> Node | None:
        """Return the first child with a label."""
        return next(self.all(label), None)

    def child(self, name: str) -> Node | None:
        """Return the child with a name."""
        return next((child for child in self.children if child.name == name), None)

    def need(self, name: str) -> Node:
        """Return the child with a name.

        Raises
        ------
        MeshError
            When there is none.
        """
        found = self.child(name)
        if found is None:
            known = ", ".join(child.name for child in self.children) or "none"
            raise MeshError(f"{self.where}: the node {name!r} is missing (nodes: {known})")
        return found

    def array(self) -> Array:
        """Return the data.

        Raises
        ------
        MeshError
            For a node without data.
        """
        found = self.load()
        if found is None:
            raise MeshError(f"{self.where}: this {self.label} holds no data")
        return found

    def integers(self, count: int | None = None) -> npt.NDArray[np.int64]:
        """Return the data as integers; when their number is given, in a row.

        Raises
        ------
        MeshError
            For data that are no integers, or not as many.
        """
        found = self.array()
        if found.dtype.kind not in "iu":
            raise MeshError(f"{self.where}: integers are wanted, not {found.dtype}")
        if count is not None and found.size != count:
            raise MeshError(f"{self.where}: {count} integers are wanted, not {found.size}")
        return found.astype(np.int64) if count is None else found.astype(np.int64).reshape(-1)

    def text(self) -> str:
        """Return the data as text, without the blanks around it."""
        found = self.load()
        return "" if found is None else found.tobytes().decode("latin-1").strip(" \0\n")
