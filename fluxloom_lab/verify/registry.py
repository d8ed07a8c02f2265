"""The known verifications; a registry so that others plug in."""

from __future__ import annotations

from typing import Any

from fluxloom.core.errors import CaseError
from fluxloom.core.registry import Registry
from fluxloom_lab.verify.base import Verification

__all__ = ["verifications"]


def verifications() -> Registry[Verification[Any]]:
    """Return the known verifications, open to the entry points ``fluxloom.verifications``."""
    registry: Registry[Verification[Any]] = Registry("verification", group="fluxloom.verifications", error=CaseError)
    registry.later("airfoil", "fluxloom_lab.verify.airfoil:AirfoilVerification")
    registry.later("airfoils", "fluxloom_lab.verify.compressible.published_airfoils:AirfoilsVerification")
    registry.later("cavity", "fluxloom_lab.verify.cavity:CavityVerification")
    registry.later("compressible", "fluxloom_lab.verify.compressible.checks:CompressibleVerification")
    registry.later("edge_flow", "fluxloom_lab.verify.edge_flow:EdgeFlowVerification")
    registry.later("fem", "fluxloom_lab.verify.fem:FiniteElementVerification")
    registry.later("incompressible", "fluxloom_lab.verify.incompressible:IncompressibleVerification")
    registry.later("lbm", "fluxloom_lab.verify.lattice.checks:LatticeVerification")
    for part in ("exact", "storage", "channel", "cavity", "stream", "boxes", "vortex", "sphere"):
        registry.later(f"lbm-{part}", "fluxloom_lab.verify.lattice.checks:LatticeVerification", (part,))
    registry.later("onera-m6", "fluxloom_lab.verify.compressible.wing:WingVerification")
    registry.later("poisson", "fluxloom_lab.verify.poisson:PoissonVerification")
    registry.later("staggered", "fluxloom_lab.verify.staggered:StaggeredVerification")
    registry.later("tsunami", "fluxloom_lab.verify.tsunami:TsunamiVerification")
    registry.later("walls", "fluxloom_lab.verify.compressible.published_walls:WallsVerification")
    return registry
