"""Lattice Boltzmann flows beside exact and published results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log2
from typing import Any

from fluxloom.dsl.context import Context
from fluxloom.lbm.boundaries import PressureScheme, VelocityScheme
from fluxloom.lbm.collisions.operators import BGK, MRT, TRT, CentralMoments, Collision, Cumulant, Regularised
from fluxloom_lab.verify.base import Check, DataOptions, FullOptions, Tell, VerifyOptions
from fluxloom_lab.verify.lattice.exact import (
    balance_errors,
    channel_error,
    force_channel_error,
    mass_drift,
    offset_channel_error,
    shear_viscosity,
    vortex_error,
)
from fluxloom_lab.verify.lattice.published import boxes, cavities, channel, spheres, stream, vortex
from fluxloom_lab.verify.lattice.storage import storage

__all__ = ["PARTS", "LatticeVerification"]

_WIND = 0.1
_OPERATORS: tuple[Collision, ...] = (BGK(), TRT(), MRT(), Regularised(), CentralMoments(), Cumulant())


def _exact(context: Context, options: VerifyOptions, tell: Tell) -> Iterator[Check]:
    """Operators, walls, sides, balances."""
    del options, tell
    for operator in _OPERATORS:
        name = operator.type_name
        order = log2(vortex_error(context, 32, operator) / vortex_error(context, 64, operator))
        yield Check(f"Taylor-Green vortex, {name}: order in L2", order, 2.0, 0.05, "h^2")
        moving = isinstance(operator, (CentralMoments, Cumulant))
        wanted = 1.0 if moving else 1.0 - 3.0 * _WIND**2
        found = shear_viscosity(context, operator, _WIND)
        source = "no influence of the frame" if moving else "1 - 3 U^2: equilibrium of second order in U"
        yield Check(f"shear wave in a wind of {_WIND:g}, {name}: viscosity", found, wanted, 0.002, source)
    yield Check("closed cavity: change of mass", mass_drift(context), 0.0, 1e-13, "conservation")
    for what, error in balance_errors(context).items():
        yield Check(f"immersed cylinder that swings: {what}", error, 0.0, 1e-10, "conservation")
    error = force_channel_error(context)
    yield Check("channel with force, half-way walls, TRT 3/16: error", error, 0.0, 1e-10, "Poiseuille")
    order = log2(offset_channel_error(context, 12) / offset_channel_error(context, 24))
    yield Check("channel with force, interpolated walls: order", order, 2.0, 0.15, "h^2")
    for inlet in VelocityScheme.choices:
        for outlet in PressureScheme.choices:
            schemes = VelocityScheme.choices[inlet](), PressureScheme.choices[outlet]()
            coarse, fine = (channel_error(context, n, *schemes) for n in (8, 16))
            order = log2(coarse / fine)
            yield Check(f"channel, velocity {inlet}, pressure {outlet}: order", order, 2.0, 0.2, "h^2")


Part = Callable[[Context, Any, Tell], Iterator[Check]]

PARTS: dict[str, tuple[Part, str]] = {
    "exact": (_exact, "orders of operators, walls and sides, conservation"),
    "storage": (storage, "single and half precision beside double"),
    "channel": (channel, "cylinder in a channel, 2D-1 of Schäfer and Turek"),
    "cavity": (cavities, "lid-driven cavity at Reynolds number 1000 beside Botella and Peyret"),
    "stream": (stream, "cylinder in a stream, Reynolds numbers 20, 40 and 100"),
    "boxes": (boxes, "what the box does to a cylinder in a stream"),
    "vortex": (vortex, "decay of the Taylor-Green vortex in space, Reynolds number 1600"),
    "sphere": (spheres, "sphere in a stream, Reynolds number 100"),
}
"""Parts of the verification: what yields the checks, and what they are."""


@dataclass(frozen=True)
class LatticeVerification:
    """Lattice Boltzmann flows beside exact and published results.

    With ``--full`` grids are finer, there are more methods, and the sphere and other boxes too: more than an hour on
    two cores. On devices of work items grids are finer still.

    Attributes
    ----------
    parts
        Of `PARTS`; none: all of them.
    """

    parts: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What is verified, in one line."""
        if self.parts:
            return "lbm: " + "; ".join(PARTS[part][1] for part in self.parts)
        return f"lbm: all of {', '.join(f'lbm-{part}' for part in PARTS)}"

    @property
    def options(self) -> type[VerifyOptions]:
        """The options that its parts have."""
        parts = self.parts or tuple(PARTS)
        return DataOptions if "vortex" in parts else VerifyOptions if parts == ("exact",) else FullOptions

    def run(self, options: VerifyOptions, tell: Tell) -> Iterator[Check]:
        """Yield the checks as they are done.

        Raises
        ------
        CaseError
            On a device that runs no generated code.
        """
        context = options.native_context()
        for part in self.parts or PARTS:
            yield from PARTS[part][0](context, options, tell)
