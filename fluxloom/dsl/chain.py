"""A chain: a fixed sequence of loops, analysed once, replayed with one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluxloom.device.cpu import CpuDevice, Sequencer
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.report import LoopReport

__all__ = ["Chain", "Reset"]


class Reset:
    def __init__(self, target: Global, value: float = 0.0) -> None:
        self.target = target
        self.value = value

    def __call__(self) -> None:
        self.target.value = self.value


class Chain:
    def __init__(self, steps, *, transient=(), fuse=True, name="chain"):
        self.steps=steps
    def __call__(self):
        for s in self.steps: s()
    def reports(self):
        return [s.report() for s in self.steps if isinstance(s, Loop)]
