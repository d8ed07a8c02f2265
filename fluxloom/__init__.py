"""Fluxloom: write the numerics once, in plain Python; run them on every kind of processor.

The public names. What stands behind each is imported when the name is first asked for, so that
``import fluxloom`` needs nothing but NumPy and is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from fluxloom.core.packages import import_late as _import_late
from fluxloom.kernel.frontend import Func as Func
from fluxloom.kernel.frontend import func as func
from fluxloom.kernel.frontend import kernel as kernel

if TYPE_CHECKING:
    from fluxloom import mesh as mesh
    from fluxloom.comm import detect as detect
    from fluxloom.comm import run_threads as run_threads
    from fluxloom.comm import world as world
    from fluxloom.dsl.chain import Chain as Chain
    from fluxloom.dsl.chain import Reset as Reset
    from fluxloom.dsl.checkpoint import Checkpoints as Checkpoints
    from fluxloom.dsl.checkpoint import CheckpointWarning as CheckpointWarning
    from fluxloom.dsl.context import Context as Context
    from fluxloom.dsl.dats import Dat as Dat
    from fluxloom.dsl.dats import Global as Global
    from fluxloom.dsl.decompose import Link as Link
    from fluxloom.dsl.decompose import decompose as decompose
    from fluxloom.dsl.lazy import lazy as lazy
    from fluxloom.dsl.loop import Loop as Loop
    from fluxloom.dsl.loop import par_loop as par_loop
    from fluxloom.dsl.online import OnlineTuning as OnlineTuning
    from fluxloom.dsl.ragged import CSR as CSR
    from fluxloom.dsl.ragged import ELL as ELL
    from fluxloom.dsl.ragged import RaggedLayout as RaggedLayout
    from fluxloom.dsl.ragged import SlicedELL as SlicedELL
    from fluxloom.dsl.schedule import Schedule as Schedule
    from fluxloom.dsl.tiling import TiledChain as TiledChain
    from fluxloom.dsl.tune import tune as tune
    from fluxloom.fv.compressible_boundary import BoundaryCondition as BoundaryCondition
    from fluxloom.fv.compressible_fluxes import AUSM as AUSM
    from fluxloom.fv.compressible_fluxes import HLLC as HLLC
    from fluxloom.fv.compressible_fluxes import Flux as Flux
    from fluxloom.fv.compressible_fluxes import Roe as Roe
    from fluxloom.fv.compressible_fluxes import Rusanov as Rusanov
    from fluxloom.fv.eddy_viscosity import EddyViscosity as EddyViscosity
    from fluxloom.fv.gas import ConstantViscosity as ConstantViscosity
    from fluxloom.fv.gas import Gas as Gas
    from fluxloom.fv.gas import Sutherland as Sutherland
    from fluxloom.fv.gas import ViscosityLaw as ViscosityLaw
    from fluxloom.fv.limiters import BarthJespersen as BarthJespersen
    from fluxloom.fv.limiters import Limiter as Limiter
    from fluxloom.fv.limiters import Venkatakrishnan as Venkatakrishnan
    from fluxloom.fv.spalart_allmaras import SpalartAllmaras as SpalartAllmaras
    from fluxloom.fv.time_schemes import RK2 as RK2
    from fluxloom.fv.time_schemes import RK5 as RK5
    from fluxloom.fv.time_schemes import SSPRK3 as SSPRK3
    from fluxloom.fv.time_schemes import TimeScheme as TimeScheme
    from fluxloom.fv.turbulence import TurbulenceModel as TurbulenceModel
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
    from fluxloom.lbm.collisions import BGK as BGK
    from fluxloom.lbm.collisions import MRT as MRT
    from fluxloom.lbm.collisions import TRT as TRT
    from fluxloom.lbm.collisions import CentralMoments as CentralMoments
    from fluxloom.lbm.collisions import Collision as Collision
    from fluxloom.lbm.collisions import Cumulant as Cumulant
    from fluxloom.lbm.collisions import Regularised as Regularised
    from fluxloom.lbm.lattices import D2Q9 as D2Q9
    from fluxloom.lbm.lattices import D3Q19 as D3Q19
    from fluxloom.lbm.lattices import D3Q27 as D3Q27
    from fluxloom.linalg import poisson as poisson
    from fluxloom.linalg import tridiagonal as tridiagonal
    from fluxloom.linalg.matrix import SparseMatrix as SparseMatrix
    from fluxloom.linalg.operators import Preconditioner as Preconditioner
    from fluxloom.linalg.rings import RingProduct as RingProduct
    from fluxloom.run.start import Start as Start
    from fluxloom.solvers.airfoil import Airfoil as Airfoil
    from fluxloom.solvers.lattice import LatticeBoltzmann as LatticeBoltzmann
    from fluxloom.solvers.shallow_water import ShallowWater as ShallowWater

if not TYPE_CHECKING:  # checkers of types take the imports above, and report a name that is not among them
    _LATE = _import_late(__name__, {
        "fluxloom.comm": "detect run_threads world",
        "fluxloom.dsl.chain": "Chain Reset",
        "fluxloom.dsl.checkpoint": "CheckpointWarning Checkpoints",
        "fluxloom.dsl.context": "Context",
        "fluxloom.dsl.dats": "Dat Global",
        "fluxloom.dsl.decompose": "Link decompose",
        "fluxloom.dsl.lazy": "lazy",
        "fluxloom.dsl.loop": "Loop par_loop",
        "fluxloom.dsl.online": "OnlineTuning",
        "fluxloom.dsl.ragged": "CSR ELL RaggedLayout SlicedELL",
        "fluxloom.dsl.schedule": "Schedule",
        "fluxloom.dsl.tiling": "TiledChain",
        "fluxloom.dsl.tune": "tune",
        "fluxloom.fv.compressible_boundary": "BoundaryCondition",
        "fluxloom.fv.compressible_fluxes": "AUSM HLLC Flux Roe Rusanov",
        "fluxloom.fv.eddy_viscosity": "EddyViscosity",
        "fluxloom.fv.gas": "ConstantViscosity Gas Sutherland ViscosityLaw",
        "fluxloom.fv.limiters": "BarthJespersen Limiter Venkatakrishnan",
        "fluxloom.fv.spalart_allmaras": "SpalartAllmaras",
        "fluxloom.fv.time_schemes": "RK2 RK5 SSPRK3 TimeScheme",
        "fluxloom.fv.turbulence": "TurbulenceModel",
        "fluxloom.kernel.intrinsics": (
            "acos asin atan atan2 cbrt ceil copysign cos cosh exp expm1 fabs floor hypot isfinite isinf "
            "isnan log log10 log1p log2 pi rolled select sign sin sinh sqrt tan tanh zeros"
        ),
        "fluxloom.lbm.collisions": "BGK MRT TRT CentralMoments Collision Cumulant Regularised",
        "fluxloom.lbm.lattices": "D2Q9 D3Q19 D3Q27",
        "fluxloom.linalg.matrix": "SparseMatrix",
        "fluxloom.linalg.poisson": "",
        "fluxloom.linalg.operators": "Preconditioner",
        "fluxloom.linalg.rings": "RingProduct",
        "fluxloom.linalg.tridiagonal": "",
        "fluxloom.mesh": "",
        "fluxloom.run.start": "Start",
        "fluxloom.solvers.airfoil": "Airfoil",
        "fluxloom.solvers.lattice": "LatticeBoltzmann",
        "fluxloom.solvers.shallow_water": "ShallowWater",
    })  # fmt: skip

    # what `import *` brings: what needs NumPy alone
    __all__ = [name for name, found in globals().items() if name[0] != "_" and hasattr(found, "__module__")]
    __all__ += [name for name, place in _LATE.items() if place.startswith(("fluxloom.dsl.", "fluxloom.kernel."))]
