"""Where the work on markers is done: with the flow, or by the host."""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.core.strategies import Strategy

__all__ = ["Fastest", "OnDevice", "OnHost", "Pipeline"]


class Pipeline(Strategy, what="pipeline", group="fluxloom.immersed_pipelines"):
    """Where interpolation, forces, spreading and motion are done."""


@dataclass(frozen=True)
class OnDevice(Pipeline, name="device"):
    """All is done where the flow is."""


@dataclass(frozen=True)
class OnHost(Pipeline, name="host"):
    """The host does it (`fluxloom.lbm.immersed.pipeline`).

    Attributes
    ----------
    threads
        Of the host; 0: all.
    overlap
        Whether it does so while the device does the step of all cells, or one after the other, to compare with.
    """

    threads: int = 0
    overlap: bool = True


@dataclass(frozen=True)
class Fastest(Pipeline, name="auto"):
    """The first steps are done in both ways and timed, the others in the faster one; values differ by rounding.

    Attributes
    ----------
    threads
        Of the host; 0: all.
    """

    threads: int = 0
