"""How the equation of the pressure of an incompressible flow is solved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fluxloom.core.strategies import Strategy
from fluxloom.dsl.declare.dats import Dat
from fluxloom.fv.geometry.extrusion import extrusion_of
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.incompressible.matrices import FlowMatrices
from fluxloom.linalg.direct.extruded.batch import PlaneGradients
from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.status import STEPS_CHECKED, Stop
from fluxloom.solvers.incompressible.types import PressureSolver

__all__ = ["ConjugateGradients", "Fourier", "PressureEquation", "PressureMethod"]


class PressureEquation(Protocol):
    """``poisson phi = b`` of a flow; its null space are the constants where it is ``floating``."""

    volumes: ControlVolumes
    matrices: FlowMatrices
    poisson: SparseMatrix
    b: Dat
    phi: Dat
    floating: bool

    def rounding(self) -> float:
        """Return what rounding leaves in ``b``, see `fluxloom.linalg.krylov.method.Krylov`. Collective."""
        ...


class PressureMethod(Strategy, what="pressure solver", group="fluxloom.pressure_solvers"):
    """What makes the solver of a flow's pressure; a member is a frozen dataclass with a method `solver`."""

    def solver(self, flow: PressureEquation, stop: Stop, preconditioner: Preconditioner) -> PressureSolver:
        """Return what solves the equation of a flow. Collective."""
        raise NotImplementedError(f"{type(self).__name__} has to define solver(flow, stop, preconditioner)")


@dataclass(frozen=True)
class ConjugateGradients(PressureMethod, name="cg"):
    """Conjugate gradients over all cells."""

    def solver(self, flow: PressureEquation, stop: Stop, preconditioner: Preconditioner) -> PressureSolver:
        """Return them."""
        found = ConjugateGradient(
            flow.poisson, flow.b, flow.phi, preconditioner=preconditioner, stop=stop,
            nullspace="constant" if flow.floating else "none", check_every=STEPS_CHECKED, name="pressure",
        )  # fmt: skip
        found.rounding = flow.rounding
        return found


@dataclass(frozen=True)
class Fourier(PressureMethod, name="fourier"):
    """Fourier transforms where the mesh is uniform and periodic along a direction, conjugate gradients in planes."""

    def solver(self, flow: PressureEquation, stop: Stop, preconditioner: Preconditioner) -> PressureSolver:
        """Return transforms and conjugate gradients in planes; of one rank."""
        return extrusion_of(flow.volumes).poisson(
            flow.matrices.poisson, flow.b, flow.phi, stop=stop, method=PlaneGradients(preconditioner),
            check_every=STEPS_CHECKED,
        )  # fmt: skip
