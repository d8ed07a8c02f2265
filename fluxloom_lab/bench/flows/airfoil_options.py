"""Options of the benchmark ``airfoil``, which its studies read too."""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom_lab.bench.options import (
    Divided,
    Laid,
    Scheduled,
    cells_option,
    fused_option,
    iterations_option,
    rounds_option,
)
from fluxloom_lab.options import option

__all__ = ["AirfoilOptions"]


@dataclass(frozen=True)
class AirfoilOptions(Divided, Scheduled, Laid):
    """Options of the benchmark ``airfoil``."""

    cells: str = cells_option("Size of the mesh: 720k, 2.88M or I,J.")
    iterations: int = iterations_option()
    rounds: int = rounds_option()
    fused: bool = fused_option()
    exhaustive: bool = option(False, help="Time every schedule of each loop too.")
    strategies: bool = option(False, help="Compare all strategies and layouts too.")
    transports: bool = option(False, help="Compare all ways of messages too.")
