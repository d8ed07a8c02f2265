"""Incompressible flow on edges: order, continuity, energy, and lid-driven cavities in the plane and in space."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import log2

import numpy as np

from fluxloom.dsl.context import Context
from fluxloom.mesh.generate.boxes import Diagonal
from fluxloom_lab.problems.edge_flow_cases import (
    FlowError,
    channel,
    edge_cavity,
    energy_of_cavity,
    energy_of_decay,
    kovasznay,
    made_flow,
    peak,
    slip_vortices,
)
from fluxloom_lab.problems.lid_cavity import BOTELLA_PEYRET, SOURCE
from fluxloom_lab.verify.base import Check, FullOptions, Tell
from fluxloom_lab.verify.edge_flow_space import cavity_in_space
from fluxloom_lab.verify.edge_flow_time import order_in_time

__all__ = ["GHIA_100", "EdgeFlowVerification"]

_GHIA = "Ghia, Ghia and Shin 1982"
_MARCHI = "Marchi, Suero and Araki 2009"
_EXACT = "exact solution"

GHIA_100 = np.array([
    [0.0547, -0.03717], [0.0625, -0.04192], [0.0703, -0.04775], [0.1016, -0.06434], [0.1719, -0.10150],
    [0.2813, -0.15662], [0.4531, -0.21090], [0.5000, -0.20581], [0.6172, -0.13641], [0.7344, 0.00332],
    [0.8516, 0.23151], [0.9531, 0.68717], [0.9609, 0.73722], [0.9688, 0.78871], [0.9766, 0.84123],
])  # fmt: skip
"""``y`` and ``u`` on the vertical centreline of the cavity at the Reynolds number 100."""

_MARCHI_100 = (-0.2140417, 0.1795728, -0.2538030)
_NAMES = ("least u at x = 1/2", "largest v at y = 1/2", "least v at y = 1/2")


class EdgeFlowVerification:
    """Made flows, a wake, vortices, a channel, energy, time, cavities; ``--full``: finer, and Reynolds number 1000."""

    title = "edge_flow: order on triangles and tetrahedra, continuity, energy, the lid-driven cavity"
    options = FullOptions

    def run(self, options: FullOptions, tell: Tell) -> Iterator[Check]:
        """Yield the checks as they are done."""
        context, full = options.context(), options.full
        yield from _orders(context, full, tell)
        yield from _channel(context, tell)
        yield from _energy(context, tell)
        yield from order_in_time(context, tell)
        yield from _low(context, (24, 48) if full else (16, 24), tell)
        yield from cavity_in_space(context, tell, full)
        if full:
            yield from _high(context, tell)


def _orders(context: Context, full: bool, tell: Tell) -> Iterator[Check]:
    """Check errors on meshes of which each has half the width of the one before."""
    families: list[tuple[str, tuple[int, ...], Callable[[int], FlowError], float]] = [
        ("forced flow, triangles", (8, 16, 32), lambda n: made_flow(context, 2, n), 0.2),
        ("forced flow, tetrahedra", (4, 8, 16, 24)[: 4 if full else 3], lambda n: made_flow(context, 3, n), 0.45),
        ("wake of a grid (Kovasznay)", (12, 24, 48) if full else (12, 24), lambda n: kovasznay(context, n), 0.25),
        ("vortices between planes, dt ~ h", (8, 16, 32), lambda n: slip_vortices(context, n, 2 * n)[1], 0.3),
    ]
    for what, sizes, case, allowed in families:
        tell(f"{what}: {', '.join(map(str, sizes))} intervals a side")
        found = [case(n) for n in sizes]
        for (coarse, a), (fine, b) in pairwise(zip(sizes, found, strict=True)):
            halvings = log2(fine / coarse)
            order = log2(a.velocity / b.velocity) / halvings
            yield Check(f"{what}: order of the velocity, {coarse} to {fine}", order, 2.0, allowed / 2.0, _EXACT)
            # from 3/2 on, as with elements of one order for both; more on coarse meshes
            order = log2(a.pressure / b.pressure) / halvings
            yield Check(f"{what}: order of the pressure, {coarse} to {fine}", order, 2.0, 0.25, _EXACT)
        left = found[-1].imbalance
        yield Check(f"{what}: what is left of continuity, 1/s", left, 0.0, 1e-8, "tolerance of the solver")


def _channel(context: Context, tell: Tell) -> Iterator[Check]:
    """Check the flow in a channel, and what its walls bear."""
    tell("channel with an outflow")
    flow, found = channel(context, 8)
    yield Check("channel: error of the velocity", found.velocity, 0.0, 2e-4, "Poiseuille")
    yield Check("channel: error of the pressure", found.pressure, 0.0, 2e-3, "Poiseuille")
    along, across = flow.force("ymin")
    yield Check("channel: friction of a wall, 4 nu along 2", float(along), 0.8, 1e-3, "Poiseuille")
    yield Check("channel: pressure on a wall", float(across), -1.6, 1e-3, "Poiseuille")


def _energy(context: Context, tell: Tell) -> Iterator[Check]:
    """Check that energy is bounded where the mesh resolves nothing."""
    tell("cavity at Reynolds number 1e5 on 16 x 16 intervals, 20 units of time")
    gain, most = energy_of_cavity(context)
    yield Check("cavity, Re = 1e5: energy gained over the work of the lid, 0 to 1", gain, 0.5, 1.0, "power of the lid")
    yield Check("cavity, Re = 1e5: largest energy, 0 to 1/2", most, 0.25, 1.0, "fluid as fast as the lid")
    decay = energy_of_decay(context)
    # the pressure begins at 0: the first steps are those in which it gets to what the flow asks
    most = float(max(np.diff(decay)[10:].max(), 0.0))
    yield Check("decay, Re = 1e5: largest rise of energy in a step after the tenth", most, 0.0, 0.0, "energy")
    yield Check("decay, Re = 1e5: energy over the first, 0 to 1", float(decay.max() / decay[0]), 1.0, 0.0, "energy")


def _low(context: Context, sizes: tuple[int, ...], tell: Tell) -> Iterator[Check]:
    """Check the cavity at the Reynolds number 100."""
    for n in sizes:
        what, allowed = f"cavity, Re = 100, {n} x {n} intervals", {16: 0.02, 24: 0.01, 48: 0.01}[n]
        tell(what)
        _, upright, level = edge_cavity(context, n, 100.0)
        off = np.abs(np.interp(GHIA_100[:, 0], *upright.T) - GHIA_100[:, 1]).max()
        yield Check(f"{what}: largest deviation of u, of the lid's speed", float(off), 0.0, allowed, _GHIA)
        found = peak(upright, -1.0), peak(level, 1.0), peak(level, -1.0)
        for name, value, reference in zip(_NAMES, found, _MARCHI_100, strict=True):
            yield Check(f"{what}: {name}", value, reference, {16: 0.05, 24: 0.025, 48: 0.01}[n], _MARCHI)


def _high(context: Context, tell: Tell) -> Iterator[Check]:
    """Check the cavity at the Reynolds number 1000; deviations are parts of the speed of the lid.

    Orders with diagonals of one direction: with alternating ones, which are nearer, points have four or eight
    neighbours, and what they are off alternates by as much as an extreme is off.
    """
    off: list[list[float]] = []
    meshes: tuple[tuple[int, Diagonal, float], ...] = (
        (24, "right", 0.025), (48, "right", 0.007), (48, "alternating", 0.004),
    )  # fmt: skip
    for n, diagonal, allowed in meshes:
        what = f"cavity, Re = 1000, {n} x {n} intervals, diagonals {diagonal}"
        tell(what)
        _, upright, level = edge_cavity(context, n, 1000.0, 1.5, still=1e-5, diagonal=diagonal)
        found = peak(upright, -1.0), peak(level, 1.0), peak(level, -1.0)
        off.append([value - reference for value, reference in zip(found, BOTELLA_PEYRET.values(), strict=True)])
        for name, value in zip(_NAMES, off[-1], strict=True):
            yield Check(f"{what}: {name}, off", value, 0.0, allowed, SOURCE)
    for name, coarse, fine in zip(_NAMES, *off[:2], strict=True):
        # from 3/2 on: the velocity jumps at the ends of the lid
        yield Check(f"cavity, Re = 1000: order of the {name}", log2(abs(coarse / fine)), 2.0, 0.25, SOURCE)
