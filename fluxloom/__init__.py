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
from fluxloom.core.dtypes import AoS as AoS
from fluxloom.core.dtypes import Blocked as Blocked
from fluxloom.core.dtypes import SoA as SoA
from fluxloom.core.errors import FluxloomError as FluxloomError
from fluxloom.core.packages import import_late as _import_late
from fluxloom.kernel.frontend import Func as Func
from fluxloom.kernel.frontend import func as func
from fluxloom.kernel.frontend import kernel as kernel

if TYPE_CHECKING:
    from fluxloom import mesh as mesh
    from fluxloom.comm import detect as detect
    from fluxloom.comm import run_threads as run_threads
    from fluxloom.comm import world as world
    from fluxloom.dsl.checkpoint.checkpoint import Checkpoints as Checkpoints
    from fluxloom.dsl.checkpoint.checkpoint import CheckpointWarning as CheckpointWarning
    from fluxloom.dsl.context import Context as Context
    from fluxloom.dsl.declare.dats import Dat as Dat
    from fluxloom.dsl.declare.dats import Global as Global
    from fluxloom.dsl.declare.ragged import CSR as CSR
    from fluxloom.dsl.declare.ragged import ELL as ELL
    from fluxloom.dsl.declare.ragged import RaggedLayout as RaggedLayout
    from fluxloom.dsl.declare.ragged import SlicedELL as SlicedELL
    from fluxloom.dsl.declare.schedule import Schedule as Schedule
    from fluxloom.dsl.ranks.decompose import Link as Link
    from fluxloom.dsl.ranks.decompose import decompose as decompose
    from fluxloom.dsl.run.chain import Chain as Chain
    from fluxloom.dsl.run.chain import Reset as Reset
    from fluxloom.dsl.run.loop import Loop as Loop
    from fluxloom.dsl.run.loop import par_loop as par_loop
    from fluxloom.dsl.tiles.lazy import lazy as lazy
    from fluxloom.dsl.tiles.tiling import TiledChain as TiledChain
    from fluxloom.dsl.tune.online import OnlineTuning as OnlineTuning
    from fluxloom.dsl.tune.search import tune as tune
    from fluxloom.flows.airfoil.flow import Airfoil as Airfoil
    from fluxloom.flows.compressible.flow import Compressible as Compressible
    from fluxloom.flows.compressible.steps import Explicit as Explicit
    from fluxloom.flows.edges.diffusion import Diffusion as Diffusion
    from fluxloom.flows.edges.flow import EdgeFlow as EdgeFlow
    from fluxloom.flows.edges.transport import Transport as Transport
    from fluxloom.flows.flow_plan import StepLengths as StepLengths
    from fluxloom.flows.incompressible.flow import Incompressible as Incompressible
    from fluxloom.flows.incompressible.flow import IncompressibleScheme as IncompressibleScheme
    from fluxloom.flows.incompressible.flow import Pressure as Pressure
    from fluxloom.flows.lattice.flow import Lattice as Lattice
    from fluxloom.flows.shallow.flow import Event as Event
    from fluxloom.flows.shallow.flow import Plan as Plan
    from fluxloom.flows.shallow.flow import ShallowWater as ShallowWater
    from fluxloom.flows.staggered.flow import Staggered as Staggered
    from fluxloom.flows.volumes import Domain as Domain
    from fluxloom.fv.compressible.boundary import BoundaryCondition as BoundaryCondition
    from fluxloom.fv.compressible.boundary import FarField as FarField
    from fluxloom.fv.compressible.boundary import MassFlowInlet as MassFlowInlet
    from fluxloom.fv.compressible.boundary import NoSlipWall as NoSlipWall
    from fluxloom.fv.compressible.boundary import PressureOutlet as PressureOutlet
    from fluxloom.fv.compressible.boundary import SlipWall as SlipWall
    from fluxloom.fv.compressible.boundary import SupersonicInlet as SupersonicInlet
    from fluxloom.fv.compressible.boundary import SupersonicOutlet as SupersonicOutlet
    from fluxloom.fv.compressible.boundary import SymmetryPlane as SymmetryPlane
    from fluxloom.fv.compressible.boundary import TotalInlet as TotalInlet
    from fluxloom.fv.compressible.boundary import VelocityInlet as VelocityInlet
    from fluxloom.fv.compressible.fluxes import AUSM as AUSM
    from fluxloom.fv.compressible.fluxes import HLLC as HLLC
    from fluxloom.fv.compressible.fluxes import Flux as Flux
    from fluxloom.fv.compressible.fluxes import Roe as Roe
    from fluxloom.fv.compressible.fluxes import Rusanov as Rusanov
    from fluxloom.fv.compressible.free_stream import FreeStream as FreeStream
    from fluxloom.fv.compressible.gas import ConstantViscosity as ConstantViscosity
    from fluxloom.fv.compressible.gas import Gas as Gas
    from fluxloom.fv.compressible.gas import Sutherland as Sutherland
    from fluxloom.fv.compressible.gas import ViscosityLaw as ViscosityLaw
    from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras as SpalartAllmaras
    from fluxloom.fv.compressible.viscous_flux import TurbulenceModel as TurbulenceModel
    from fluxloom.fv.geometry.cell_faces import Rotation as Rotation
    from fluxloom.fv.geometry.sectors import Sector as Sector
    from fluxloom.fv.gradients.limiters import BarthJespersen as BarthJespersen
    from fluxloom.fv.gradients.limiters import Limiter as Limiter
    from fluxloom.fv.gradients.limiters import Venkatakrishnan as Venkatakrishnan
    from fluxloom.fv.incompressible.boundary import Inflow as Inflow
    from fluxloom.fv.incompressible.boundary import NoSlip as NoSlip
    from fluxloom.fv.incompressible.boundary import Outflow as Outflow
    from fluxloom.fv.incompressible.boundary import Symmetry as Symmetry
    from fluxloom.fv.incompressible.eddy_viscosity import EddyViscosity as EddyViscosity
    from fluxloom.fv.incompressible.eddy_viscosity import Qr as Qr
    from fluxloom.fv.incompressible.eddy_viscosity import S3pqr as S3pqr
    from fluxloom.fv.incompressible.eddy_viscosity import Sigma as Sigma
    from fluxloom.fv.incompressible.eddy_viscosity import Smagorinsky as Smagorinsky
    from fluxloom.fv.incompressible.eddy_viscosity import Wale as Wale
    from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth as AdamsBashforth
    from fluxloom.fv.incompressible.projection_schemes import RungeKutta as RungeKutta
    from fluxloom.fv.incompressible.projection_schemes import Wray as Wray
    from fluxloom.fv.incompressible.scalar_boundary import Adiabatic as Adiabatic
    from fluxloom.fv.incompressible.scalar_boundary import FixedFlux as FixedFlux
    from fluxloom.fv.incompressible.scalar_boundary import FixedValue as FixedValue
    from fluxloom.fv.shallow.boundary import Incident as Incident
    from fluxloom.fv.shallow.boundary import Level as Level
    from fluxloom.fv.shallow.scheme import ShallowScheme as ShallowScheme
    from fluxloom.fv.staggered.grid import StaggeredGrid as StaggeredGrid
    from fluxloom.fv.time_schemes import RK2 as RK2
    from fluxloom.fv.time_schemes import RK5 as RK5
    from fluxloom.fv.time_schemes import SSPRK3 as SSPRK3
    from fluxloom.fv.time_schemes import TimeScheme as TimeScheme
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
    from fluxloom.lbm.collisions.operators import BGK as BGK
    from fluxloom.lbm.collisions.operators import MRT as MRT
    from fluxloom.lbm.collisions.operators import TRT as TRT
    from fluxloom.lbm.collisions.operators import CentralMoments as CentralMoments
    from fluxloom.lbm.collisions.operators import Collision as Collision
    from fluxloom.lbm.collisions.operators import Cumulant as Cumulant
    from fluxloom.lbm.collisions.operators import Regularised as Regularised
    from fluxloom.lbm.lattices import D2Q9 as D2Q9
    from fluxloom.lbm.lattices import D3Q19 as D3Q19
    from fluxloom.lbm.lattices import D3Q27 as D3Q27
    from fluxloom.linalg.direct import poisson as poisson
    from fluxloom.linalg.direct import tridiagonal as tridiagonal
    from fluxloom.linalg.matrix.matrix import SparseMatrix as SparseMatrix
    from fluxloom.linalg.matrix.rings import RingProduct as RingProduct
    from fluxloom.linalg.operators import Preconditioner as Preconditioner
    from fluxloom.linalg.precond.jacobi import Jacobi as Jacobi
    from fluxloom.linalg.precond.multigrid import SmoothedAggregation as SmoothedAggregation
    from fluxloom.linalg.status import Stop as Stop
    from fluxloom.monitors.averages import Averages as Averages
    from fluxloom.monitors.film import Film as Film
    from fluxloom.monitors.forces import Forces as Forces
    from fluxloom.monitors.forces import Reference as Reference
    from fluxloom.monitors.lines import Line as Line
    from fluxloom.monitors.patch_flow import PatchFlow as PatchFlow
    from fluxloom.monitors.plateau import Plateau as Plateau
    from fluxloom.monitors.probes import Probes as Probes
    from fluxloom.monitors.slices import Slice as Slice
    from fluxloom.monitors.spectrum import Spectrum as Spectrum
    from fluxloom.monitors.walls import HeatReference as HeatReference
    from fluxloom.monitors.walls import Walls as Walls
    from fluxloom.run.checkpoint import Every as Every
    from fluxloom.run.flow import Flow as Flow
    from fluxloom.run.flow import Steady as Steady
    from fluxloom.run.flow import Steps as Steps
    from fluxloom.run.flow import Time as Time
    from fluxloom.run.flow import Until as Until
    from fluxloom.run.history import History as History
    from fluxloom.run.monitor import Monitor as Monitor
    from fluxloom.run.result import Result as Result
    from fluxloom.run.run import run as run
    from fluxloom.run.session import Output as Output
    from fluxloom.run.snapshots import Snapshots as Snapshots
    from fluxloom.run.start import Start as Start
    from fluxloom.run.watch import GuardLimits as GuardLimits
    from fluxloom.solvers.airfoil.flow import AirfoilConstants as AirfoilConstants
    from fluxloom.solvers.compressible.cycles import Implicit as Implicit
    from fluxloom.solvers.compressible.cycles import Multigrid as Multigrid
    from fluxloom.solvers.compressible.scheme import CompressibleScheme as CompressibleScheme
    from fluxloom.solvers.edges.boundary import WallLaw as WallLaw
    from fluxloom.solvers.edges.diffusion import Convective as Convective
    from fluxloom.solvers.edges.scheme import EdgeScheme as EdgeScheme
    from fluxloom.solvers.edges.subscales import Tracked as Tracked
    from fluxloom.solvers.incompressible.buoyancy import Buoyancy as Buoyancy
    from fluxloom.solvers.incompressible.scalar import Scalar as Scalar
    from fluxloom.solvers.lattice.flow import LatticeBoltzmann as LatticeBoltzmann
    from fluxloom.values.fluctuation import Fluctuation as Fluctuation
    from fluxloom.values.given_on import GivenOn as GivenOn
    from fluxloom.values.tables import Profile as Profile
    from fluxloom.values.tables import Raster as Raster
    from fluxloom.values.tables import TimeSeries as TimeSeries
    from fluxloom.values.value import Value as Value
    from fluxloom.values.value import value_of as value_of
    from fluxloom.values.value import vector_of as vector_of

if not TYPE_CHECKING:  # checkers of types take the imports above, and report a name that is not among them
    _LATE = _import_late(__name__, {
        "fluxloom.comm": "detect run_threads world",
        "fluxloom.dsl.checkpoint.checkpoint": "CheckpointWarning Checkpoints",
        "fluxloom.dsl.context": "Context",
        "fluxloom.dsl.declare.dats": "Dat Global",
        "fluxloom.dsl.declare.ragged": "CSR ELL RaggedLayout SlicedELL",
        "fluxloom.dsl.declare.schedule": "Schedule",
        "fluxloom.dsl.ranks.decompose": "Link decompose",
        "fluxloom.dsl.run.chain": "Chain Reset",
        "fluxloom.dsl.run.loop": "Loop par_loop",
        "fluxloom.dsl.tiles.lazy": "lazy",
        "fluxloom.dsl.tiles.tiling": "TiledChain",
        "fluxloom.dsl.tune.online": "OnlineTuning",
        "fluxloom.dsl.tune.search": "tune",
        "fluxloom.flows.airfoil.flow": "Airfoil",
        "fluxloom.flows.compressible.flow": "Compressible",
        "fluxloom.flows.compressible.steps": "Explicit",
        "fluxloom.flows.edges.diffusion": "Diffusion",
        "fluxloom.flows.edges.flow": "EdgeFlow",
        "fluxloom.flows.edges.transport": "Transport",
        "fluxloom.flows.flow_plan": "StepLengths",
        "fluxloom.flows.incompressible.flow": "Incompressible IncompressibleScheme Pressure",
        "fluxloom.flows.lattice.flow": "Lattice",
        "fluxloom.flows.shallow.flow": "Event Plan ShallowWater",
        "fluxloom.flows.staggered.flow": "Staggered",
        "fluxloom.flows.volumes": "Domain",
        "fluxloom.fv.compressible.boundary": (
            "BoundaryCondition FarField MassFlowInlet NoSlipWall PressureOutlet SlipWall SupersonicInlet "
            "SupersonicOutlet SymmetryPlane TotalInlet VelocityInlet"
        ),
        "fluxloom.fv.compressible.fluxes": "AUSM HLLC Flux Roe Rusanov",
        "fluxloom.fv.compressible.free_stream": "FreeStream",
        "fluxloom.fv.compressible.gas": "ConstantViscosity Gas Sutherland ViscosityLaw",
        "fluxloom.fv.compressible.spalart_allmaras": "SpalartAllmaras",
        "fluxloom.fv.compressible.viscous_flux": "TurbulenceModel",
        "fluxloom.fv.geometry.cell_faces": "Rotation",
        "fluxloom.fv.geometry.sectors": "Sector",
        "fluxloom.fv.gradients.limiters": "BarthJespersen Limiter Venkatakrishnan",
        "fluxloom.fv.incompressible.boundary": "Inflow NoSlip Outflow Symmetry",
        "fluxloom.fv.incompressible.eddy_viscosity": "EddyViscosity Qr S3pqr Sigma Smagorinsky Wale",
        "fluxloom.fv.incompressible.projection_schemes": "AdamsBashforth RungeKutta Wray",
        "fluxloom.fv.incompressible.scalar_boundary": "Adiabatic FixedFlux FixedValue",
        "fluxloom.fv.shallow.boundary": "Incident Level",
        "fluxloom.fv.shallow.scheme": "ShallowScheme",
        "fluxloom.fv.staggered.grid": "StaggeredGrid",
        "fluxloom.fv.time_schemes": "RK2 RK5 SSPRK3 TimeScheme",
        "fluxloom.kernel.intrinsics": (
            "acos asin atan atan2 cbrt ceil copysign cos cosh exp expm1 fabs floor hypot isfinite isinf isnan log "
            "log10 log1p log2 pi rolled select sign sin sinh sqrt tan tanh zeros"
        ),
        "fluxloom.lbm.collisions.operators": "BGK MRT TRT CentralMoments Collision Cumulant Regularised",
        "fluxloom.lbm.lattices": "D2Q9 D3Q19 D3Q27",
        "fluxloom.linalg.direct.poisson": "",
        "fluxloom.linalg.direct.tridiagonal": "",
        "fluxloom.linalg.matrix.matrix": "SparseMatrix",
        "fluxloom.linalg.matrix.rings": "RingProduct",
        "fluxloom.linalg.operators": "Preconditioner",
        "fluxloom.linalg.precond.jacobi": "Jacobi",
        "fluxloom.linalg.precond.multigrid": "SmoothedAggregation",
        "fluxloom.linalg.status": "Stop",
        "fluxloom.mesh": "",
        "fluxloom.monitors.averages": "Averages",
        "fluxloom.monitors.film": "Film",
        "fluxloom.monitors.forces": "Forces Reference",
        "fluxloom.monitors.lines": "Line",
        "fluxloom.monitors.patch_flow": "PatchFlow",
        "fluxloom.monitors.plateau": "Plateau",
        "fluxloom.monitors.probes": "Probes",
        "fluxloom.monitors.slices": "Slice",
        "fluxloom.monitors.spectrum": "Spectrum",
        "fluxloom.monitors.walls": "HeatReference Walls",
        "fluxloom.run.checkpoint": "Every",
        "fluxloom.run.flow": "Flow Steady Steps Time Until",
        "fluxloom.run.history": "History",
        "fluxloom.run.monitor": "Monitor",
        "fluxloom.run.result": "Result",
        "fluxloom.run.run": "run",
        "fluxloom.run.session": "Output",
        "fluxloom.run.snapshots": "Snapshots",
        "fluxloom.run.start": "Start",
        "fluxloom.run.watch": "GuardLimits",
        "fluxloom.solvers.airfoil.flow": "AirfoilConstants",
        "fluxloom.solvers.compressible.cycles": "Implicit Multigrid",
        "fluxloom.solvers.compressible.scheme": "CompressibleScheme",
        "fluxloom.solvers.edges.boundary": "WallLaw",
        "fluxloom.solvers.edges.diffusion": "Convective",
        "fluxloom.solvers.edges.scheme": "EdgeScheme",
        "fluxloom.solvers.edges.subscales": "Tracked",
        "fluxloom.solvers.incompressible.buoyancy": "Buoyancy",
        "fluxloom.solvers.incompressible.scalar": "Scalar",
        "fluxloom.solvers.lattice.flow": "LatticeBoltzmann",
        "fluxloom.values.fluctuation": "Fluctuation",
        "fluxloom.values.given_on": "GivenOn",
        "fluxloom.values.tables": "Profile Raster TimeSeries",
        "fluxloom.values.value": "Value value_of vector_of",
    })  # fmt: skip

    # what `import *` brings: what needs NumPy alone
    __all__ = [name for name, found in globals().items() if name[0] != "_" and hasattr(found, "__qualname__")]
    __all__ += [name for name, place in _LATE.items() if place.startswith(("fluxloom.dsl.", "fluxloom.kernel."))]
