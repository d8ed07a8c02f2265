"""What storage of populations in fewer bits changes in flows with published results."""

from __future__ import annotations

from collections.abc import Iterator

from fluxloom.dsl.context import Context
from fluxloom.lbm.collisions.operators import TRT
from fluxloom_lab.verify.base import Check, FullOptions, Tell
from fluxloom_lab.verify.lattice.bodies import channel_cylinder
from fluxloom_lab.verify.lattice.cavity import cavity, cavity_extremes
from fluxloom_lab.verify.lattice.exact import vortex_velocity
from fluxloom_lab.verify.lattice.space import decay

__all__ = ["storage", "stored_cavity", "stored_channel", "stored_decay", "stored_vortex"]

_ALLOWED = {
    "vortex": {"float32": 1e-6, "float16": 5e-4},
    "cavity": {"float32": 1e-4, "float16": 0.05},
    "channel": {"float32": 1e-3, "float16": 0.03},
    "decay": {"float32": 1e-3, "float16": 0.05},
}
_LIFT = {"float32": 0.01, "float16": 1.0}
"""The lift is a five hundredth of the drag: half precision is no good for it, and the number says how far it is off."""

_CAVITY_TIMES, _CHANNEL_TIMES, _CHANNEL_SPEED = 40, 40, 0.04
"""In ``L / U`` and ``D / U``, from rest, for all precisions: half precision gets never quite steady."""

Numbers = dict[str, float]


def stored_vortex(context: Context, dtype: str) -> Numbers:
    """Return the strength of a plane vortex at ``2 nu k^2 t = 1``, over the exact one."""
    velocity, exact = vortex_velocity(context, 64, TRT(), dtype, speed=0.05)
    return {"strength": float((velocity * exact).sum() / (exact * exact).sum())}


def stored_cavity(context: Context, dtype: str, n: int = 64) -> Numbers:
    """Return the extremes on the centre lines of the cavity."""
    return cavity_extremes(cavity(context, n, dtype=dtype, times=_CAVITY_TIMES)[1])


def stored_channel(context: Context, dtype: str, d: int = 20) -> Numbers:
    """Return drag and lift of the cylinder in a channel, means over two steps."""
    case = channel_cylinder(context, d, "interpolated", dtype, _CHANNEL_SPEED)
    case.flow.step(2 * round(_CHANNEL_TIMES * case.turnover / 2) - 1)
    first = case.coefficients()
    case.flow.step(1)
    case.flow.check_finite()
    drag, lift = 0.5 * (first + case.coefficients())
    return {"drag": float(drag), "lift": float(lift)}


def stored_decay(context: Context, dtype: str, n: int = 32) -> Numbers:
    """Return energies of the vortex in space."""
    found = decay(context, n, dtype=dtype)
    return {"energy at 5": found.at(5.0), "energy at 10": found.at(10.0)}


_CASES = {"vortex": stored_vortex, "cavity": stored_cavity, "channel": stored_channel, "decay": stored_decay}
_NAMES = {
    "vortex": "plane vortex, 64^2", "cavity": "cavity, 64^2", "channel": "cylinder in a channel, D = 20",
    "decay": "vortex in space, 32^3",
}  # fmt: skip


def storage(context: Context, options: FullOptions, tell: Tell) -> Iterator[Check]:
    """Single and half precision beside double, after the same number of steps; with ``--full`` finer grids too."""
    more = {
        "cavity, 128^2": ("cavity", lambda dtype: stored_cavity(context, dtype, 128)),
        "vortex in space, 64^3": ("decay", lambda dtype: stored_decay(context, dtype, 64)),
    }  # fmt: skip
    cases = {_NAMES[key]: (key, lambda dtype, run=run: run(context, dtype)) for key, run in _CASES.items()}
    for name, (key, run) in (cases | more if options.full else cases).items():
        wide = run("float64")
        tell(f"{name}, float64: " + ", ".join(f"{what} {value:.7g}" for what, value in wide.items()))
        for dtype, allowed in _ALLOWED[key].items():
            for what, value in run(dtype).items():
                near = _LIFT[dtype] if what == "lift" else allowed
                yield Check(f"{name}, {dtype}: {what}", value, wide[what], near, "the same in float64")
