"""Devices that generate code and run none."""

from __future__ import annotations

from collections.abc import Collection

from fluxloom.core.dtypes import Scalar
from fluxloom.device.base import Buffer, Device

__all__ = ["FakeItems"]


class FakeItems(Device):
    """A device of work items without hardware.

    Parameters
    ----------
    dialect
        Language of its code: also its name.
    refused
        Names of types that it does not have.
    unadded
        Names of types that it cannot add atomically.
    """

    native = True
    shared = False
    items = True

    def __init__(self, dialect: str, *, refused: Collection[str] = (), unadded: Collection[str] = ()) -> None:
        self.name = self.dialect = dialect
        self._refused, self._unadded = frozenset(refused), frozenset(unadded)

    def allocate(self, nbytes: int, stagger: int = 0) -> Buffer:
        return Buffer(nbytes)

    def describe(self) -> str:
        return f"a thing that speaks {self.dialect}"

    def refuses(self, scalar: Scalar) -> str:
        return f"no {scalar.name} here: use dtype='float32'" if scalar.name in self._refused else ""

    def atomic_add(self, scalar: Scalar) -> bool:
        return scalar.name not in self._unadded
