"""The known benchmarks; a registry so that others plug in."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from fluxloom.core.errors import CaseError
from fluxloom.core.registry import Registry
from fluxloom_lab.bench.base import Record, Tell
from fluxloom_lab.bench.options import BenchOptions

__all__ = ["Bench", "benches"]

Options = TypeVar("Options", bound=BenchOptions)


class Bench(Protocol[Options]):
    """A benchmark.

    Its options are the fields of a dataclass, from which the command line is made. If that is a
    `fluxloom_lab.bench.options.Ranked`, the benchmark runs on several ranks: `run` is collective then, and the record
    is wanted on rank 0.
    """

    @property
    def title(self) -> str:
        """What it measures, in one line."""
        ...

    @property
    def options(self) -> type[Options]:
        """The options that it has."""
        ...

    def run(self, options: Options, tell: Tell) -> Record:
        """Measure."""
        ...


def benches() -> Registry[Bench[Any]]:
    """Return the known benchmarks, open to the entry points ``fluxloom.benches``."""
    registry: Registry[Bench[Any]] = Registry("benchmark", group="fluxloom.benches", error=CaseError)
    registry.later("airfoil", "fluxloom_lab.bench.flows.airfoil:AirfoilBench")
    registry.later("cavity", "fluxloom_lab.bench.flows.cavity:CavityBench")
    registry.later("compressible", "fluxloom_lab.bench.flows.compressible:CompressibleBench")
    registry.later("edge_flow", "fluxloom_lab.bench.flows.edge_flow:EdgeFlowBench")
    registry.later("extruded", "fluxloom_lab.bench.linear.extruded:ExtrudedBench")
    registry.later("fem", "fluxloom_lab.bench.linear.fem:FemBench")
    registry.later("hybrid", "fluxloom_lab.bench.hybrid:HybridBench")
    registry.later("ib", "fluxloom_lab.bench.boxes.immersed:ImmersedBench")
    registry.later("kratos", "fluxloom_lab.bench.flows.kratos_bench:KratosBench")
    registry.later("krylov", "fluxloom_lab.bench.linear.krylov:KrylovBench")
    registry.later("lbm", "fluxloom_lab.bench.boxes.lattice:LbmBench")
    registry.later("les", "fluxloom_lab.bench.flows.les:LesBench")
    registry.later("mixed", "fluxloom_lab.bench.mixed:MixedBench")
    registry.later("overhead", "fluxloom_lab.bench.overhead:OverheadBench")
    registry.later("poisson", "fluxloom_lab.bench.linear.poisson:PoissonBench")
    registry.later("rings", "fluxloom_lab.bench.linear.rings:RingsBench")
    registry.later("scaling", "fluxloom_lab.bench.scaling:ScalingBench")
    registry.later("separable", "fluxloom_lab.bench.linear.separable:SeparableBench")
    registry.later("setup", "fluxloom_lab.bench.setup:SetupBench")
    registry.later("spmv", "fluxloom_lab.bench.linear.spmv:SpmvBench")
    registry.later("spmv-table", "fluxloom_lab.bench.linear.spmv_table:SpmvTableBench")
    registry.later("tiling", "fluxloom_lab.bench.tiling:TilingBench")
    registry.later("tridiagonal", "fluxloom_lab.bench.linear.tridiagonal:TridiagonalBench")
    return registry
