"""Fluxloom: write the numerics once, in plain Python; run them on every kind of processor.

The public names of the loop layer. Layers above it are imported on first use, so that
``import fluxloom`` needs nothing but NumPy.
"""

from __future__ import annotations

from typing import Any

from fluxloom.core.access import RW as RW
from fluxloom.core.access import Const as Const
from fluxloom.core.access import Inc as Inc
from fluxloom.core.access import Max as Max
from fluxloom.core.access import Min as Min
from fluxloom.core.access import Read as Read
from fluxloom.core.access import Write as Write
from fluxloom.core.errors import FluxloomError as FluxloomError
from fluxloom.core.layout import AoS as AoS
from fluxloom.core.layout import Blocked as Blocked
from fluxloom.core.layout import SoA as SoA
from fluxloom.dsl.chain import Chain as Chain
from fluxloom.dsl.chain import Reset as Reset
from fluxloom.dsl.context import Context as Context
from fluxloom.dsl.dats import Dat as Dat
from fluxloom.dsl.dats import Global as Global
from fluxloom.dsl.loop import Loop as Loop
from fluxloom.dsl.loop import par_loop as par_loop
from fluxloom.dsl.ragged import CSR as CSR
from fluxloom.dsl.ragged import ELL as ELL
from fluxloom.dsl.ragged import RowGroupedCSR as RowGroupedCSR
from fluxloom.dsl.ragged import SlicedELL as SlicedELL
from fluxloom.dsl.schedule import Schedule as Schedule
from fluxloom.kernel.frontend import func as func
from fluxloom.kernel.frontend import kernel as kernel
from fluxloom.kernel.intrinsics import acos as acos
from fluxloom.kernel.intrinsics import asin as asin
from fluxloom.kernel.intrinsics import atan as atan
from fluxloom.kernel.intrinsics import atan2 as atan2
from fluxloom.kernel.intrinsics import cbrt as cbrt
from fluxloom.kernel.intrinsics import ceil as ceil
from fluxloom.kernel.intrinsics import copysign as copysign
from fluxloom.kernel.intrinsics import cos as cos
from fluxloom.kernel.intrinsics import cosh as cosh
from fluxloom.kernel.intrinsics import exp as exp
from fluxloom.kernel.intrinsics import expm1 as expm1
from fluxloom.kernel.intrinsics import fabs as fabs
from fluxloom.kernel.intrinsics import floor as floor
from fluxloom.kernel.intrinsics import hypot as hypot
from fluxloom.kernel.intrinsics import isfinite as isfinite
from fluxloom.kernel.intrinsics import isinf as isinf
from fluxloom.kernel.intrinsics import isnan as isnan
from fluxloom.kernel.intrinsics import log as log
from fluxloom.kernel.intrinsics import log1p as log1p
from fluxloom.kernel.intrinsics import log2 as log2
from fluxloom.kernel.intrinsics import log10 as log10
from fluxloom.kernel.intrinsics import pi as pi
from fluxloom.kernel.intrinsics import rolled as rolled
from fluxloom.kernel.intrinsics import select as select
from fluxloom.kernel.intrinsics import sign as sign
from fluxloom.kernel.intrinsics import sin as sin
from fluxloom.kernel.intrinsics import sinh as sinh
from fluxloom.kernel.intrinsics import sqrt as sqrt
from fluxloom.kernel.intrinsics import tan as tan
from fluxloom.kernel.intrinsics import tanh as tanh
from fluxloom.kernel.intrinsics import zeros as zeros


def __getattr__(name: str) -> Any:
    """Import what is not needed from the start when it is first asked for."""
    match name:
        case "mesh":
            import fluxloom.mesh as found

            return found
        case "poisson":
            import fluxloom.linalg.poisson as found

            return found
        case "tridiagonal":
            import fluxloom.linalg.tridiagonal as found

            return found
        case "Airfoil":
            import fluxloom.solvers.airfoil as found
        case "Checkpoints" | "CheckpointWarning":
            import fluxloom.dsl.checkpoint as found
        case "LatticeBoltzmann":
            import fluxloom.solvers.lattice as found
        case "Link" | "decompose":
            import fluxloom.dsl.decompose as found
        case "OnlineTuning":
            import fluxloom.dsl.online as found
        case "RingProduct":
            import fluxloom.linalg.rings as found
        case "ShallowWater":
            import fluxloom.solvers.shallow_water as found
        case "SparseMatrix":
            import fluxloom.linalg.matrix as found
        case "TiledChain":
            import fluxloom.dsl.tiling as found
        case "detect" | "run_threads" | "world":
            import fluxloom.comm as found
        case "lazy":
            import fluxloom.dsl.lazy as found
        case "tune":
            import fluxloom.dsl.tune as found
        case _:
            raise AttributeError(f"module 'fluxloom' has no attribute {name!r}")
    return getattr(found, name)
