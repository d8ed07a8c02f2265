"""The known benchmarks; a registry so that others plug in."""

from __future__ import annotations

from fluxloom.app.bench.base import Bench
from fluxloom.core.errors import CaseError
from fluxloom.core.registry import Registry

__all__ = ["benches"]


def benches() -> Registry[Bench]:
    """Return the known benchmarks, open to the entry points ``fluxloom.benches``."""
    from fluxloom.app.bench.airfoil import AirfoilBench
    from fluxloom.app.bench.cavity import CavityBench
    from fluxloom.app.bench.compressible import CompressibleBench
    from fluxloom.app.bench.edge_flow import EdgeFlowBench
    from fluxloom.app.bench.extruded import ExtrudedBench
    from fluxloom.app.bench.fem import FemBench
    from fluxloom.app.bench.hybrid import HybridBench
    from fluxloom.app.bench.immersed import ImmersedBench
    from fluxloom.app.bench.kratos_bench import KratosBench
    from fluxloom.app.bench.krylov import KrylovBench
    from fluxloom.app.bench.lbm import LbmBench
    from fluxloom.app.bench.les import LesBench
    from fluxloom.app.bench.mixed import MixedBench
    from fluxloom.app.bench.overhead import OverheadBench
    from fluxloom.app.bench.poisson import PoissonBench
    from fluxloom.app.bench.rings import RingsBench
    from fluxloom.app.bench.scaling import ScalingBench
    from fluxloom.app.bench.separable import SeparableBench
    from fluxloom.app.bench.setup import SetupBench
    from fluxloom.app.bench.spmv import SpmvBench
    from fluxloom.app.bench.spmv_table import SpmvTableBench
    from fluxloom.app.bench.tiling import TilingBench
    from fluxloom.app.bench.tridiagonal import TridiagonalBench

    registry: Registry[Bench] = Registry("benchmark", group="fluxloom.benches", error=CaseError)
    registry.register("airfoil", AirfoilBench())
    registry.register("cavity", CavityBench())
    registry.register("compressible", CompressibleBench())
    registry.register("edge_flow", EdgeFlowBench())
    registry.register("extruded", ExtrudedBench())
    registry.register("fem", FemBench())
    registry.register("hybrid", HybridBench())
    registry.register("ib", ImmersedBench())
    registry.register("kratos", KratosBench())
    registry.register("krylov", KrylovBench())
    registry.register("lbm", LbmBench())
    registry.register("les", LesBench())
    registry.register("mixed", MixedBench())
    registry.register("overhead", OverheadBench())
    registry.register("poisson", PoissonBench())
    registry.register("rings", RingsBench())
    registry.register("scaling", ScalingBench())
    registry.register("separable", SeparableBench())
    registry.register("setup", SetupBench())
    registry.register("spmv", SpmvBench())
    registry.register("spmv-table", SpmvTableBench())
    registry.register("tiling", TilingBench())
    registry.register("tridiagonal", TridiagonalBench())
    return registry
