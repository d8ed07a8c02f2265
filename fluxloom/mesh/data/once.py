"""A property that is computed at its first use and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["Once"]

Value = TypeVar("Value")


class Once(Generic[Value]):
    """Decorator of a method without arguments: its result is computed at the first use and kept by the object.

    ``functools.cached_property`` of Python 3.11 computes under a lock that all objects share: ranks that are threads
    of one process and exchange messages while they compute would wait for each other forever. Here nothing is locked.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Once[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Once[Value] | Value:
        if instance is None:
            return self
        value = self._compute(instance)
        vars(instance)[self._name] = value  # found before this descriptor from now on
        return value
