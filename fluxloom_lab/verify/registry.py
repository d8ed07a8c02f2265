"""The known verifications; a registry so that others plug in."""

from __future__ import annotations

from typing import Any

from fluxloom.core.errors import CaseError
from fluxloom.core.registry import Registry
from fluxloom_lab.verify.base import Verification

__all__ = ["verifications"]


def verifications() -> Registry[Verification[Any]]:
    """Return the known verifications, open to the entry points ``fluxloom.verifications``."""
    from fluxloom_lab.verify.airfoil import AirfoilVerification
    from fluxloom_lab.verify.cavity import CavityVerification
    from fluxloom_lab.verify.compressible import CompressibleVerification
    from fluxloom_lab.verify.edge_flow import EdgeFlowVerification
    from fluxloom_lab.verify.fem import FiniteElementVerification
    from fluxloom_lab.verify.incompressible import IncompressibleVerification
    from fluxloom_lab.verify.lbm import PARTS, LatticeVerification
    from fluxloom_lab.verify.poisson import PoissonVerification
    from fluxloom_lab.verify.published_airfoils import AirfoilsVerification
    from fluxloom_lab.verify.published_walls import WallsVerification
    from fluxloom_lab.verify.staggered import StaggeredVerification
    from fluxloom_lab.verify.tsunami import TsunamiVerification
    from fluxloom_lab.verify.wing import WingVerification

    registry: Registry[Verification[Any]] = Registry("verification", group="fluxloom.verifications", error=CaseError)
    registry.register("airfoil", AirfoilVerification())
    registry.register("airfoils", AirfoilsVerification())
    registry.register("cavity", CavityVerification())
    registry.register("compressible", CompressibleVerification())
    registry.register("edge_flow", EdgeFlowVerification())
    registry.register("fem", FiniteElementVerification())
    registry.register("incompressible", IncompressibleVerification())
    registry.register("lbm", LatticeVerification())
    for part in PARTS:
        registry.register(f"lbm-{part}", LatticeVerification((part,)))
    registry.register("onera-m6", WingVerification())
    registry.register("poisson", PoissonVerification())
    registry.register("staggered", StaggeredVerification())
    registry.register("tsunami", TsunamiVerification())
    registry.register("walls", WallsVerification())
    return registry
