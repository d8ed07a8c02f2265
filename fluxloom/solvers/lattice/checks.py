"""Checks of what a lattice Boltzmann flow is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.advice import warn
from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.core.strategies import is_ours, require_strategy
from fluxloom.lbm.boundaries import Body, Sponge
from fluxloom.lbm.cells.box import AXES, Box, side_names
from fluxloom.lbm.collisions.operators import BGK, Collision
from fluxloom.lbm.collisions.rates import relaxation
from fluxloom.lbm.lattices import LATTICES, SOUND_SPEED_SQUARED, Lattice
from fluxloom.lbm.streaming.memory import Cells
from fluxloom.lbm.streaming.schemes import Streaming
from fluxloom.lbm.streaming.steps import relax_with

__all__ = [
    "check_cells", "check_collision", "check_conditions", "check_count", "check_dtype", "check_force", "check_half",
    "check_immersed",
    "check_lattice", "check_shape", "check_start", "check_streaming", "check_viscosity", "joined_axes",
]  # fmt: skip

DTYPES = ("float16", "float32", "float64")

IN_PLACE = ("aa", "aa-pattern", "esoteric", "esoteric-pull", "esoteric-push", "esoteric-twist", "swap", "inplace")
"""What others call streaming that needs one copy of the populations."""

LEAST, MOST = 1e-6, 1.0
"""Viscosities beyond which a flow is hardly ever meant."""

LOST = 9000
"""Steps: from rest a flow between walls ends low by about its time over this, in half precision (measured)."""


def check_lattice(lattice: Any) -> Lattice:
    """Return a lattice; raise `SolverError` for anything else, as its name."""
    if isinstance(lattice, Lattice):
        return lattice
    known = str(lattice).upper()
    if known in LATTICES:
        raise SolverError(f"lattice={lattice!r}: give the lattice itself: from fluxloom.lbm.lattices import {known}")
    raise SolverError(
        f"lattice={lattice!r}: a lattice of fluxloom.lbm.lattices is wanted{did_you_mean(known, LATTICES)} "
        f"(there are: {', '.join(LATTICES)})"
    )


def check_shape(shape: Any, lattice: Lattice) -> tuple[int, ...]:
    """Return cells along each axis.

    Raises
    ------
    SolverError
        Unless they are whole, positive, and as many as the lattice has axes.
    """
    axes = "(nz, ny, nx)" if lattice.dimensions > 2 else "(ny, nx)"
    try:
        values = tuple(shape)
        found = tuple(int(n) for n in values)
        whole = all(n == m and n > 0 for n, m in zip(values, found, strict=True))
    except (TypeError, ValueError, OverflowError):
        raise SolverError(f"shape={shape!r}: cells along each axis are wanted, {axes}") from None
    if len(found) != lattice.dimensions:
        raise SolverError(
            f"{lattice.name} needs a shape of {lattice.dimensions} axes, not {values}: cells along each, {axes}"
        )
    if not whole:
        raise SolverError(f"shape={values}: numbers of cells are whole and positive, {axes}")
    return found


def check_collision(collision: Any, lattice: Lattice) -> Collision:
    """Return a collision operator, by default `BGK`; raise `SolverError` for anything else, or if it does not fit."""
    if collision is None:
        return BGK()
    require_strategy("collision", collision, Collision)
    collision.check(lattice)
    if not is_ours(collision):
        from fluxloom.fv.compressible.formula_trials import try_collision

        rates = relaxation(lattice, collision.rates(0.05), np.float64)
        try_collision(collision, lambda g, force: relax_with(g, force, lattice, collision, rates), lattice)
    return collision


def check_streaming(streaming: Any) -> Streaming:
    """Return a scheme of streaming; names that others give to the one in place lead to it.

    Raises
    ------
    SolverError
        For anything else.
    """
    if str(streaming).lower().replace("_", "-").replace(" ", "-") in IN_PLACE:
        raise SolverError(
            f"streaming: {streaming!r}, others say; write streaming=InPlace(), the AA pattern, with one copy of the "
            "populations"
        )
    require_strategy("streaming", streaming, Streaming)
    return streaming


def check_cells(cells: Any) -> None:
    """Raise `SolverError` for what does not say which cells are stored."""
    require_strategy("cells", cells, Cells)


def check_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the type of stored populations; raise `SolverError` for one that cannot be."""
    try:
        found = np.dtype(dtype).name
    except TypeError:
        found = str(dtype)
    if dtype is None or found not in DTYPES:
        raise SolverError(
            f"dtype={dtype!r}{did_you_mean(found, DTYPES)}: populations are stored as one of {', '.join(DTYPES)}"
        )
    return np.dtype(found)


def check_conditions(boundaries: Any, bodies: Any) -> None:
    """Raise `SolverError` unless sides have conditions, and bodies are bodies."""
    if not isinstance(boundaries, Mapping):
        raise SolverError(f"boundaries={boundaries!r}: a dictionary is wanted, as {{'ymin': Wall(), 'ymax': Wall()}}")
    for name, condition in boundaries.items():
        _check_condition(f"boundaries[{name!r}]", condition.beside if isinstance(condition, Sponge) else condition)
    if not isinstance(bodies, Sequence):
        raise SolverError(f"bodies={bodies!r}: a list is wanted, as [Body('disc', Circle(...))]")
    for number, body in enumerate(bodies):
        if not isinstance(body, Body):
            what = type(body).__name__
            raise SolverError(f"bodies[{number}] is a {what}: give a Body, as Body('disc', Circle(...), Wall())")
        _check_condition(f"body {body.name!r}", body.condition)


def _check_condition(where: str, condition: Any) -> None:
    """Raise `SolverError` for what is no condition: its class, its name, or anything else."""
    if isinstance(condition, type):
        raise SolverError(
            f"{where}: {condition.__name__} is the class; give one of it, {condition.__name__}(), with its values"
        )
    if hasattr(condition, "part") and hasattr(condition, "order"):
        return
    if isinstance(condition, Sponge):
        raise SolverError(f"{where}: only sides of the box have sponges; give the body a Wall")
    names = ("Wall", "Slip", "Velocity", "Pressure", "Outflow")
    meant = {name.lower(): f"{name}(...)" for name in names}.get(str(condition).lower(), f"one of {', '.join(names)}")
    raise SolverError(f"{where}: {condition!r} is no condition; give {meant} of fluxloom.lbm.boundaries")


def check_half(dtype: np.dtype[Any], force: Sequence[float], box: Box, viscosity: float) -> None:
    r"""Warn where half precision loses a force.

    What a step adds is rounded to 1/2048 of what is there. Between walls :math:`H` apart a force :math:`F` drives a
    flow of :math:`F H^2 / 8 \nu`. Started from rest it stops where the force is lost beside it, low by about
    :math:`H^2 / 8 \nu` over 9000 steps (measured). How large the populations are makes no difference.
    """
    walls = [n for n, joined in zip(box.shape, box.periodic, strict=True) if not joined]
    if dtype.itemsize > np.dtype(np.float16).itemsize or not any(force) or not walls:
        return
    steps = min(walls) ** 2 / (8.0 * viscosity)
    if steps > LOST / 100:
        warn(
            f"dtype='float16' with a force: between walls {min(walls)} cells apart the flow grows over H^2 / 8 nu = "
            f"{steps:.0f} steps, and what a step adds is lost by rounding: from rest it ends about "
            f"{steps / (steps + LOST):.0%} low. Start from the velocity that you expect, or take dtype='float32'",
            RuntimeWarning,
        )


def check_viscosity(viscosity: Any) -> float:
    """Return a viscosity; warn where it can hardly be meant.

    Raises
    ------
    SolverError
        Unless it is a number, positive and finite.
    """
    try:
        found = float("nan" if isinstance(viscosity, str) else viscosity)
    except (TypeError, ValueError):
        found = float("nan")
    if not (np.isfinite(found) and found > 0):
        raise SolverError(f"the viscosity must be positive, not {viscosity!r} (lattice units: cells^2 a step)")
    if not LEAST <= found <= MOST:
        advice = (
            "hardly any flow stays smooth: take a larger velocity or more cells for the same Reynolds number"
            if found < LEAST
            else "walls and small structures are wrong: take a smaller velocity for the same Reynolds number"
        )
        warn(
            f"with a viscosity of {found:.3g} cells^2 a step (relaxation time {found / SOUND_SPEED_SQUARED + 0.5:.8g}"
            f" steps, and 1/2 is its limit) {advice}",
            RuntimeWarning,
        )
    return found


def check_immersed(bodies: Sequence[Any], box: Box, solid: npt.NDArray[np.bool_]) -> None:
    """Raise `SolverError` if an immersed body reaches out of the box, or into a solid one.

    It may be so near to a side or a solid body that its markers spread forces to cells that are no fluid: these forces
    are lost, and what is interpolated there is wrong.

    Parameters
    ----------
    solid
        Over the box.
    """
    lengths, joined = np.array(box.shape), np.array(box.periodic)
    for body in bodies:
        at, name = np.asarray(body.markers.positions), f"immersed body {body.name!r}"
        if at.shape[1] != box.dimensions:
            raise SolverError(f"{name} has markers in {at.shape[1]} dimensions, the flow has {box.dimensions}")
        beyond = ~joined & ((at < -0.5) | (at > lengths - 0.5))
        if beyond.any():
            axis = int(np.flatnonzero(beyond.any(axis=0))[0])
            end = "min" if np.any(at[:, axis] < -0.5) else "max"
            out = int(beyond.any(axis=1).sum())
            raise SolverError(
                f"{name}: {out:,} of its {len(at):,} markers lie beyond the side "
                f"{AXES[box.dimensions - 1 - axis]}{end}; move it into the box (cell centres are at 0 ... n - 1)"
            )
        inside = np.mod(np.rint(at).astype(np.int64), lengths)
        covered = int(np.count_nonzero(solid[tuple(inside.T)]))
        if covered:
            raise SolverError(
                f"{name}: {covered:,} of its {len(at):,} markers lie in a solid body; the fluid ends "
                "there: move it away, or make one body of both"
            )


def check_count(count: int) -> int:
    """Return a number of steps; raise `SolverError` unless it is whole and not negative."""
    try:
        found = index(count)
    except TypeError:
        raise SolverError(f"the number of steps must be whole, not {count!r}") from None
    if found < 0:
        raise SolverError(f"the number of steps must not be negative, not {count}: a flow cannot go back")
    return found


def check_start(density: npt.ArrayLike, velocity: npt.ArrayLike, *shapes: tuple[int, ...]) -> None:
    """Raise `SolverError` unless densities are positive, all values finite, and arrays fit the box.

    Parameters
    ----------
    shapes
        Of the box, and of what else may be given; none: they are not looked at.
    """
    rho, u = (_numbers(name, values) for name, values in (("density", density), ("velocity", velocity)))
    if not (np.all(np.isfinite(rho)) and np.all(rho > 0)):
        raise SolverError("initialise: the density must be positive and finite everywhere (it is one at rest)")
    if not np.all(np.isfinite(u)):
        raise SolverError("initialise: a velocity is not finite")
    for name, values, more in (("density", rho, ()), ("velocity", u, (len(shapes[0]),) if shapes else ())):
        wanted = [(*shape, *more) for shape in shapes]
        if wanted and not any(_fits(values.shape, shape) for shape in wanted):
            raise SolverError(
                f"initialise: the {name} has the shape {values.shape}; {wanted[0]} is wanted, or what broadcasts to it"
            )


def _numbers(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise SolverError(f"initialise: the {name} has to be numbers, not {values!r}") from None


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether an array broadcasts to a shape."""
    try:
        return np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False


def check_force(force: Sequence[float], dimensions: int) -> tuple[float, ...]:
    """Return a force along each axis; zeros for none.

    Raises
    ------
    SolverError
        If its length or a component does not fit.
    """
    values = tuple(float(x) for x in force) or (0.0,) * dimensions
    if len(values) != dimensions or not np.all(np.isfinite(values)):
        raise SolverError(f"the force {tuple(force)} must have {dimensions} finite components, slowest axis first")
    return values


def joined_axes(dimensions: int, boundaries: Mapping[str, Any]) -> tuple[bool, ...]:
    """Return which axes are periodic, slowest first: those none of whose sides has a condition.

    Raises
    ------
    SolverError
        For a name of no side, or an axis of which one side has a condition and the other has none.
    """
    names = side_names(dimensions)
    for name in boundaries:
        if name not in names:
            known = ", ".join(names)
            raise SolverError(f"{name!r} is no side of the box{did_you_mean(name, names)} (there are: {known})")
    found = []
    for axis in AXES[:dimensions]:
        given = [f"{axis}{end}" in boundaries for end in ("min", "max")]
        if given[0] != given[1]:
            lacking = f"{axis}{'min' if given[1] else 'max'}"
            raise SolverError(f"side {lacking!r} has no condition, but the one across has: give both, or neither")
        found.append(not given[0])
    return tuple(reversed(found))
