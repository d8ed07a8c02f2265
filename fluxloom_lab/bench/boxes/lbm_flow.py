"""The flows of the benchmark ``lbm``: a decaying shear wave in a periodic box, or a cavity with bodies in it."""

from __future__ import annotations

from itertools import product
from math import log, pi
from typing import Any

import numpy as np

from fluxloom.core.strategies import strategy_called
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.lbm.body_force import ForceField
from fluxloom.lbm.cells.box import side_names
from fluxloom.lbm.collisions.operators import Collision
from fluxloom.lbm.streaming.memory import AllCells, FluidCells
from fluxloom.lbm.streaming.schemes import Streaming
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from fluxloom_lab.bench.boxes.lbm_choice import Choice
from fluxloom_lab.bench.options import LAYOUTS
from fluxloom_lab.problems.lbm_pack import packing

__all__ = ["LID", "SPEED", "VISCOSITY", "lattice_flow", "viscosity_error"]

VISCOSITY, SPEED = 0.02, 0.05
LID = 0.05
_PULL = 1e-7
"""A force so small that the flow stays slow for thousands of steps."""


def lattice_flow(context: Context, choice: Choice, shape: tuple[int, ...], schedule: Schedule) -> LatticeBoltzmann:
    """Return a flow at its start.

    Parameters
    ----------
    shape
        Cells along each axis, slowest first.
    """
    named: dict[str, Any] = {}
    if choice.collision != "bgk":
        named["collision"] = strategy_called(Collision, choice.collision)
    if choice.streaming != "pull":
        named["streaming"] = strategy_called(Streaming, choice.streaming)
    if choice.force == "uniform":
        named["force"] = (*(0.0,) * (len(shape) - 1), _PULL)
    if choice.force == "field":
        named["force"] = ForceField()
    if choice.walls:
        named |= _cavity(shape)
    if choice.stored:
        named["bodies"] = packing(shape, choice.fluid)
    layout = LAYOUTS[choice.layout] if choice.layout else None
    named["cells"] = FluidCells(layout=layout) if choice.stored == "fluid" else AllCells(layout=layout)
    flow = LatticeBoltzmann(
        context, shape, viscosity=VISCOSITY, lattice=choice.velocities, dtype=choice.precision, schedule=schedule,
        **named,
    )  # fmt: skip
    if choice.walls:
        flow.initialise()
    else:
        shear_wave(flow, shape)
    return flow


def _cavity(shape: tuple[int, ...]) -> dict[str, Any]:
    """Return walls on all sides, of which that at the upper end of y moves along x, and round bodies inside.

    A body is in the middle of each half, quarter or eighth of the box, an eighth of its shortest side in radius.
    """
    from fluxloom.lbm.boundaries import Body, Wall
    from fluxloom.lbm.shapes.shapes import Circle, Sphere

    lid = (*(0.0,) * (len(shape) - 1), LID)
    sides = {name: Wall() for name in side_names(len(shape))} | {"ymax": Wall(velocity=lid)}
    radius, solid = min(shape) / 16.0, Circle if len(shape) == 2 else Sphere
    middles = product(*(((0.25 * n - 0.5), (0.75 * n - 0.5)) for n in shape))
    bodies = [Body(f"body {k}", solid(middle, radius)) for k, middle in enumerate(middles)]
    return {"boundaries": sides, "bodies": bodies}


def shear_wave(flow: LatticeBoltzmann, shape: tuple[int, ...]) -> None:
    """Start with velocity along the last axis that varies as a sine along the one before."""
    n = shape[-2]
    velocity = np.zeros((n, 1, len(shape)), dtype=np.float32)
    velocity[:, 0, -1] = SPEED * np.sin(2 * pi * np.arange(n) / n)
    flow.initialise(1.0, velocity)


def viscosity_error(shape: tuple[int, ...], energies: tuple[float, float], steps: int) -> float | None:
    """Return the relative error of the viscosity, from the decay ``exp(-2 nu k^2 t)`` of the energy over some steps."""
    wave = 2 * pi / shape[-2]
    before, after = energies
    if before <= 0 or after <= 0:  # one cell across: there is no wave
        return None
    return log(before / after) / (2 * wave * wave * steps) / VISCOSITY - 1
