"""The mesh of the benchmark of compressible flow, its control volumes on the ranks, and the flow that begins there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.core.strategies import strategy_called
from fluxloom.dsl.context import Context
from fluxloom.fv.compressible.boundary import BoundaryCondition, FarField, NoSlipWall, SlipWall
from fluxloom.fv.compressible.fluxes import Flux
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import Gas, Sutherland
from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, shared_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.gradients.limiters import Limiter
from fluxloom.mesh import box3d, read_data
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.refine import refine
from fluxloom.mesh.ranks.distribute import part_of
from fluxloom.mesh.ranks.part import MeshPart
from fluxloom.mesh.ranks.renumber import renumber
from fluxloom.mesh.ranks.wall_distance import shared_wall_faces, wall_distance
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme, OverFaces
from fluxloom_lab.bench.base import box_from_text
from fluxloom_lab.bench.options import Divided, Laid, Scheduled, cells_option, iterations_option, rounds_option
from fluxloom_lab.options import option
from fluxloom_lab.problems.boxes import usual_side
from fluxloom_lab.strategies.cell_loop import OverCells

__all__ = ["LOOPS", "MODELS", "Domain", "disturbed", "domain_of", "flow_on", "model_of", "stream_state", "wall_of"]

Array = npt.NDArray[np.float64]

MODELS = ("euler", "laminar", "rans")
LOOPS = MappingProxyType({"faces": OverFaces(), "cells": OverCells()})
"""What fluxes may be looped over."""

SIDE_PYTHON, SIDE_CPU, SIDE_GPU = 4, 48, 160
_LARGEST = 2**31 // 8
_PERTURB = 0.2
"""How far inner nodes of a box are moved, as a part of an interval."""
_AMPLITUDE, _WAVES = 0.02, 3.0
_MACH, _PRESSURE, _TEMPERATURE = 0.5, 101325.0, 288.15
_RATIO = 3.0
"""Variable of the turbulence model over the kinematic viscosity."""


@dataclass(frozen=True)
class Domain:
    """Where the flow is.

    Attributes
    ----------
    name
        For messages.
    mesh
        The whole mesh; None on several ranks.
    part
        What this rank has of it.
    volumes
        Control volumes of this rank.
    cells
        Their number on all ranks.
    """

    name: str
    mesh: MeshData | None
    part: MeshPart
    volumes: ControlVolumes
    cells: int

    def wall_distance(self, patch: str) -> Array:
        """Return the distance of this rank's cells from a patch, ``(cells,)``. Collective."""
        return wall_distance(self.volumes.centres[: self.volumes.cells], *shared_wall_faces(self.part, [patch]))


@dataclass(frozen=True)
class CompressibleOptions(Divided, Scheduled, Laid):
    """Options of the benchmark ``compressible``."""

    cells: str = cells_option("Size of the box: N or NX,NY,NZ.")
    iterations: int = iterations_option()
    rounds: int = rounds_option()
    mesh: str = option("", metavar="FILE", help="Mesh of a file, in place of a box.")
    refine: int = option(0, metavar="N", help="Halve all edges of the mesh so many times.", shown="0", least=0)
    model: str = option("", metavar="NAME", help="euler, laminar or rans.")
    flux: str = option("", metavar="NAME", help="Numerical flux: roe, hllc, ausm+-up, rusanov.")
    limiter: str = option("", metavar="NAME", help="venkatakrishnan, barth-jespersen or none.")
    loops: str = option("", metavar="NAME", help="Fluxes by faces or cells.")
    storage: str = option("", metavar="TYPE", help="Of slopes: float64 or float32.")
    table: str = option("", metavar="NAME", help="kernels: the loops over faces, K1 to K10, in place of a flow.")
    transports: bool = option(False, help="Compare all ways of messages too.")

    @property
    def numerics(self) -> dict[str, Any]:
        """What is named of the scheme."""
        given = {key: value for key in ("flux", "limiter", "loops", "storage") if (value := getattr(self, key))}
        families = {"flux": Flux, "limiter": Limiter}
        found = {k: strategy_called(families[k], v) if k in families else v for k, v in given.items()}
        if self.loops:
            if self.loops not in LOOPS:
                hint = did_you_mean(self.loops, LOOPS)
                raise CaseError(f"--loops {self.loops!r}{hint} (allowed: {', '.join(LOOPS)})")
            found["loops"] = LOOPS[self.loops]
        return found


def model_of(given: str) -> str:
    """Return the model.

    Raises
    ------
    CaseError
        If there is no such model.
    """
    name = given or MODELS[0]
    if name not in MODELS:
        raise CaseError(f"--model {name!r}{did_you_mean(name, MODELS)} (allowed: {', '.join(MODELS)})")
    return name


def domain_of(options: CompressibleOptions, context: Context, *, renumbered: bool = True) -> Domain:
    """Return the mesh and its control volumes; of several ranks, rank 0 makes the mesh and hands it out. Collective.

    Parameters
    ----------
    renumbered
        Whether the cells of a file are renumbered by reverse Cuthill and McKee; those of a box never are.

    Raises
    ------
    CaseError
        For a size that is none, where there are a mesh and a size, and where there is no mesh to refine.
    """
    if options.mesh and options.cells:
        raise CaseError("--mesh reads a mesh, --cells is the size of a box: give one of them")
    if options.refine and not options.mesh:
        raise CaseError("--refine refines the mesh of --mesh; of a box give more --cells")
    shape = () if options.mesh else _shape(options, context)
    name = options.mesh or " x ".join(str(n) for n in reversed(shape))
    first = context.comm.rank == 0
    mesh = raise_on_all_ranks(context.comm, lambda: _mesh(options, shape, renumbered) if first else None)
    shares = None if isinstance(options.shares, str) else options.shares
    part = part_of(context.comm, mesh, method=options.partition, shares=shares, maps=FLOW_MAPS)
    volumes = shared_volumes(part)
    return Domain(name, None if context.distributed else mesh, part, volumes, volumes.total)


def _shape(options: CompressibleOptions, context: Context) -> tuple[int, ...]:
    shape = box_from_text(options.cells, usual_side(context, SIDE_PYTHON, SIDE_CPU, SIDE_GPU))
    if min(shape) < 2 or prod(shape) >= _LARGEST:
        raise CaseError(f"--cells {options.cells!r}: a box of 2 cells a side or more, and fewer than 268M, is wanted")
    return shape


def _mesh(options: CompressibleOptions, shape: Sequence[int], renumbered: bool) -> MeshData:
    if options.mesh:
        mesh = refine(read_data(options.mesh), options.refine)
        return renumber(mesh).mesh if renumbered else mesh
    nz, ny, nx = shape
    least = min(shape)
    return box3d(nx, ny, nz, (nx / least, ny / least, nz / least), perturb=_PERTURB)


def wall_of(patches: Mapping[str, range]) -> str:
    """Return the patch that is a wall: that below a box, else the first one."""
    return "zmin" if "zmin" in patches else next(iter(patches))


def stream_state(dimension: int) -> Array:
    """Return the primitive state of the flow beyond, ``(d + 2,)``."""
    direction = (1.0, 0.2, 0.1)[:dimension]
    return FreeStream(_MACH, _PRESSURE, _TEMPERATURE, direction).state(Gas(), dimension)


def disturbed(context: Context, places: Array) -> Array:
    """Return the flow beyond with waves of some per cent in density, velocity and pressure, ``(n, d + 2)``. Collective.

    Parameters
    ----------
    places : (n, d)
        Of this rank; waves are as long as a third of what all places span.
    """
    low = context.comm.reduce(places.min(axis=0, initial=np.inf), "min")
    high = context.comm.reduce(places.max(axis=0, initial=-np.inf), "max")
    phase = 2.0 * np.pi * _WAVES * (places - low) / np.maximum(high - low, 1e-300)
    state = stream_state(places.shape[1])
    waves = np.stack([np.sin(phase.sum(axis=1) + k) for k in range(state.size)], axis=1)
    return state * (1.0 + _AMPLITUDE * waves)


def flow_on(
    context: Context, domain: Domain, model: str, numerics: Mapping[str, Any] = MappingProxyType({})
) -> CompressibleFlow:
    """Return the flow of a model at its start. Collective.

    Parameters
    ----------
    numerics
        Flux, limiter and so on, in place of the defaults of `CompressibleScheme`.

    Raises
    ------
    SolverError
        For a flux or a limiter that is none.
    """
    volumes, d = domain.volumes, domain.volumes.dimension
    given: dict[str, Any] = dict(numerics)
    scheme = CompressibleScheme(turbulence=SpalartAllmaras() if model == "rans" else None, **given)
    gas = Gas(viscosity=None if model == "euler" else Sutherland())
    stream = FreeStream(_MACH, _PRESSURE, _TEMPERATURE, (1.0,) * d)
    nut = stream.turbulence(gas, _RATIO) if model == "rans" else 0.0
    wall = wall_of(volumes.patches)
    boundaries: dict[str, BoundaryCondition] = dict.fromkeys(volumes.patches, FarField(tuple(stream_state(d)), nut))
    boundaries[wall] = SlipWall() if model == "euler" else NoSlipWall()
    distance = domain.wall_distance(wall) if model == "rans" else None
    flow = CompressibleFlow(context, volumes, boundaries, gas, scheme, distance)
    states = disturbed(context, volumes.centres[: volumes.owned])
    flow.start(np.column_stack([states, np.full(len(states), nut)]) if model == "rans" else states)
    return flow
