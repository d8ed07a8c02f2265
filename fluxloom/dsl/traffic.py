"""Values on their way between host and device, where the two have memories of their own."""

from __future__ import annotations

from collections.abc import Iterable

from fluxloom.device.base import RemoteBuffer, Where
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.identity import unique
from fluxloom.dsl.sets import Subset
from fluxloom.dsl.tasks import PlannedLoop

__all__ = ["Traffic"]


class Traffic:
    """Keeps host and device copies of what some loops use in step.

    Before the loops run, what the host has changed is sent; afterwards what they wrote is newer on the
    device. Nothing comes back until the host asks for it.
    """

    def __init__(self, loops: Iterable[PlannedLoop], more: Iterable[Dat | Global] = ()) -> None:
        loops = list(loops)
        self._used: list[Dat | Global] = unique([a.data for loop in loops for a in loop.bound.arguments] + list(more))
        self._members: list[Subset] = unique(
            loop.over for loop in loops if isinstance(loop.over, Subset) and loop.over.most is not None
        )
        self._written: list[Dat | Global] = unique([data for loop in loops for data in loop.written] + list(more))

    def before(self) -> None:
        """Send what the host has changed."""
        for data in self._used:
            if data.buffer.where is Where.HOST:
                data.buffer.device()
        for over in self._members:
            if over.members.where is Where.HOST:
                over.members.device()

    def after(self) -> None:
        """Note what the device has changed."""
        for data in self._written:
            buffer = data.buffer
            if isinstance(buffer, RemoteBuffer):
                buffer.written()
