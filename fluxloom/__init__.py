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
            import fluxloom.mesh as mesh

            return mesh
        case "Airfoil":
            from fluxloom.solvers.airfoil import Airfoil

            return Airfoil
        case "Checkpoints":
            from fluxloom.dsl.checkpoint import Checkpoints

            return Checkpoints
        case "CheckpointWarning":
            from fluxloom.dsl.checkpoint import CheckpointWarning

            return CheckpointWarning
        case "LatticeBoltzmann":
            from fluxloom.solvers.lattice import LatticeBoltzmann

            return LatticeBoltzmann
        case "Link":
            from fluxloom.dsl.decompose import Link

            return Link
        case "OnlineTuning":
            from fluxloom.dsl.online import OnlineTuning

            return OnlineTuning
        case "RingProduct":
            from fluxloom.linalg.rings import RingProduct

            return RingProduct
        case "ShallowWater":
            from fluxloom.solvers.shallow_water import ShallowWater

            return ShallowWater
        case "SparseMatrix":
            from fluxloom.linalg.matrix import SparseMatrix

            return SparseMatrix
        case "TiledChain":
            from fluxloom.dsl.tiling import TiledChain

            return TiledChain
        case "decompose":
            from fluxloom.dsl.decompose import decompose

            return decompose
        case "detect":
            from fluxloom.comm import detect

            return detect
        case "lazy":
            from fluxloom.dsl.lazy import lazy

            return lazy
        case "run_threads":
            from fluxloom.comm import run_threads

            return run_threads
        case "tune":
            from fluxloom.dsl.tune import tune

            return tune
        case "world":
            from fluxloom.comm import world

            return world
        case _:
            raise AttributeError(f"module 'fluxloom' has no attribute {name!r}")
