"""The known benchmarks; a registry so that others plug in."""

from __future__ import annotations

from fluxloom.app.bench.base import Bench
from fluxloom.core.errors import CaseError
from fluxloom.core.registry import Registry

__all__ = ["benches"]


def benches() -> Registry[Bench]:
    """Return the known benchmarks, open to the entry points ``fluxloom.benches``."""
    registry: Registry[Bench] = Registry("benchmark", group="fluxloom.benches", error=CaseError)
    registry.later("airfoil", "fluxloom.app.bench.airfoil:AirfoilBench")
    registry.later("cavity", "fluxloom.app.bench.cavity:CavityBench")
    registry.later("compressible", "fluxloom.app.bench.compressible:CompressibleBench")
    registry.later("edge_flow", "fluxloom.app.bench.edge_flow:EdgeFlowBench")
    registry.later("extruded", "fluxloom.app.bench.extruded:ExtrudedBench")
    registry.later("fem", "fluxloom.app.bench.fem:FemBench")
    registry.later("hybrid", "fluxloom.app.bench.hybrid:HybridBench")
    registry.later("ib", "fluxloom.app.bench.immersed:ImmersedBench")
    registry.later("kratos", "fluxloom.app.bench.kratos_bench:KratosBench")
    registry.later("krylov", "fluxloom.app.bench.krylov:KrylovBench")
    registry.later("lbm", "fluxloom.app.bench.lbm:LbmBench")
    registry.later("les", "fluxloom.app.bench.les:LesBench")
    registry.later("mixed", "fluxloom.app.bench.mixed:MixedBench")
    registry.later("overhead", "fluxloom.app.bench.overhead:OverheadBench")
    registry.later("poisson", "fluxloom.app.bench.poisson:PoissonBench")
    registry.later("rings", "fluxloom.app.bench.rings:RingsBench")
    registry.later("scaling", "fluxloom.app.bench.scaling:ScalingBench")
    registry.later("separable", "fluxloom.app.bench.separable:SeparableBench")
    registry.later("setup", "fluxloom.app.bench.setup:SetupBench")
    registry.later("spmv", "fluxloom.app.bench.spmv:SpmvBench")
    registry.later("spmv-table", "fluxloom.app.bench.spmv_table:SpmvTableBench")
    registry.later("tiling", "fluxloom.app.bench.tiling:TilingBench")
    registry.later("tridiagonal", "fluxloom.app.bench.tridiagonal:TridiagonalBench")
    return registry
