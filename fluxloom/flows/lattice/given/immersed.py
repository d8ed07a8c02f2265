"""Immersed bodies and particles of a lattice Boltzmann flow together, and how they are computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fluxloom.flows.lattice.given.bodies import Body, immersed_bodies
from fluxloom.flows.lattice.given.particles import Particles
from fluxloom.flows.lattice.given.units import Units
from fluxloom.flows.naming import named
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.immersed import ImmersedBoundary
from fluxloom.lbm.immersed.markers.deltas import Delta, Roma
from fluxloom.lbm.immersed.pipelines import OnDevice, Pipeline

__all__ = ["Immersion", "immersed_boundary"]


@dataclass(frozen=True)
class Immersion:
    """How immersed bodies and particles are computed.

    Attributes
    ----------
    delta
        How markers and cells see each other.
    iterations
        Rounds of forcing in a step; 0: one, with free bodies two.
    margin
        Cells by which the cells around moving bodies are widened, to be found more rarely.
    pipeline
        Who does the work on markers.
    """

    delta: Delta = Roma()
    iterations: int = 0
    margin: int = 2
    pipeline: Pipeline = OnDevice()


def immersed_boundary(
    bodies: Mapping[str, Body], particles: Particles | None, immersion: Immersion, box: Box, units: Units
) -> ImmersedBoundary | None:
    """Return the immersed bodies and particles; None without any.

    Raises
    ------
    SolverError
        For a body that does not fit, and particles that find no room.
    """
    found = immersed_bodies(bodies, box, units, immersion.delta)
    contact = None
    if particles is not None:
        with named("particles"):
            contact = particles.contact(units)
            others = [body.shape.on_lattice(units) for body in bodies.values()]
            found += particles.bodies(box.shape, others, units)
    if not found:
        return None
    with named("immersed"):
        return ImmersedBoundary(
            found, delta=immersion.delta, iterations=immersion.iterations, margin=immersion.margin, contact=contact,
            pipeline=immersion.pipeline,
        )  # fmt: skip
