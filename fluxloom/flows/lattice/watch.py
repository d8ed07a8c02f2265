"""What guards look at in lattice Boltzmann flow: density, mass, and speeds over that of sound on the lattice."""

from __future__ import annotations

import numpy as np

from fluxloom.flows.lattice.given.units import SOUND
from fluxloom.lbm.immersed import ImmersedBoundary
from fluxloom.lbm.immersed.moving import RigidGroup
from fluxloom.lbm.streaming.output import judged
from fluxloom.run.watch import LOST, AtLeast, AtMost, Balance, Finite, GuardLimits, Reduction, Rule, Watch
from fluxloom.solvers.lattice.flow import LatticeBoltzmann

__all__ = ["lattice_watch"]

_EVERY = 100
_DRIFT = 1e-3
"""Part of the mass that rounding in single precision, and links that interpolate, may bring or take in a long run."""


def lattice_watch(
    flow: LatticeBoltzmann, boundary: ImmersedBoundary | None, table: GuardLimits, *, closed: bool, steady: bool
) -> Watch:
    """Return what guards look at in lattice Boltzmann flow.

    Parameters
    ----------
    closed
        Whether no fluid comes in or leaves, and there are no bodies.
    steady
        Whether the run aims at a steady flow.
    """
    cells = float(max(1, np.count_nonzero(flow.fluid)))
    look = Reduction(
        flow.context, lambda *found: flow.look(judged, flow.marked, *found), [LOST, "excess"], ["density"], ["square"],
        state=lambda: flow.steps % 2,
    )  # fmt: skip
    rules: list[Rule] = [Finite()] if table.finite else []
    if table.positive:
        rules.append(AtLeast("density", "density (of the lattice, 1 at rest)", "p"))
    if table.balance and closed:
        rules.append(Balance("excess", "mass over that at rest", max(_DRIFT, table.balance), scale=cells))
    if table.mach:
        limit, more = table.mach * SOUND, f"sound goes {SOUND:.4g} cells a step: take shorter steps"
        rules += [
            AtMost("mach", "body", "speed of a body in cells a step", "", limit, advice=more),
            AtMost("mach", "square", "speed in cells a step", "speed", limit, advice=more, root=True),
        ]
    host = () if boundary is None else (lambda: {"body": _fastest(boundary)},)
    return Watch(_EVERY, [look], rules, host, steady)


def _fastest(boundary: ImmersedBoundary | None) -> float:
    """Return a bound of the speed of immersed bodies in all steps so far, cells a step."""
    if boundary is None:
        return 0.0
    moving = [group.fastest for group in boundary.groups if isinstance(group, RigidGroup)]
    own = [np.linalg.norm(body.markers.velocities, axis=1).max(initial=0.0) for body in boundary.bodies]
    return float(max([0.0, *moving, *own]))
