"""The loops over all cells of a lattice Boltzmann flow: one or three a step, by the scheme of streaming."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fluxloom.dsl.loop import Loop
from fluxloom.kernel.frontend import Kernel
from fluxloom.lbm.steps import collide, even, odd, pull, push
from fluxloom.lbm.steps_moments import macros, stream

if TYPE_CHECKING:
    from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["bulk_loops"]


def bulk_loops(flow: LatticeBoltzmann) -> tuple[tuple[Loop, ...], tuple[Loop, ...]]:
    """Return the loops of an even step and of an odd one."""
    name = flow.streaming.name
    if name == "in-place":
        (f,) = flow.space.buffers
        return (_loop(flow, even, f),), (_loop(flow, odd, f[flow.ahead]),)
    a, b = flow.space.buffers
    if name == "pull":
        return (_loop(flow, pull, a[flow.stencil], out=(b,)),), (_loop(flow, pull, b[flow.stencil], out=(a,)),)
    if name == "push":
        return (_loop(flow, push, a, out=(b[flow.ahead],)),), (_loop(flow, push, b, out=(a[flow.ahead],)),)
    three = _three(flow)
    return three, three


def _three(flow: LatticeBoltzmann) -> tuple[Loop, ...]:
    """Return streaming into the second buffer, moments there, and the collision back into the first one."""
    a, b = flow.space.buffers
    return (
        Loop(stream, flow.memory.set, a[flow.stencil], b, schedule=flow.schedule, **flow.constants.of(stream)),
        _loop(flow, macros, b, out=(flow.excess, flow.motion)),
        _loop(flow, collide, b, flow.excess, flow.motion, out=(a,)),
    )


def _loop(flow: LatticeBoltzmann, kernel: Kernel, f: Any, *more: Any, out: tuple[Any, ...] = ()) -> Loop:
    """Return a loop of a kernel: populations, what more it reads, the force of each cell, and what it writes."""
    field = flow.force_field if flow.field else None
    return Loop(kernel, flow.memory.set, f, *more, field, *out, schedule=flow.schedule, **flow.constants.of(kernel))
