"""The known verifications; a registry so that others plug in."""

from __future__ import annotations

from fluxloom.app.verify.base import Verification
from fluxloom.core.errors import CaseError
from fluxloom.core.registry import Registry

__all__ = ["verifications"]


def verifications() -> Registry[Verification]:
    """Return the known verifications, open to the entry points ``fluxloom.verifications``."""
    from fluxloom.app.verify.airfoil import AirfoilVerification
    from fluxloom.app.verify.cavity import CavityVerification
    from fluxloom.app.verify.compressible import CompressibleVerification
    from fluxloom.app.verify.edge_flow import EdgeFlowVerification
    from fluxloom.app.verify.fem import FiniteElementVerification
    from fluxloom.app.verify.incompressible import IncompressibleVerification
    from fluxloom.app.verify.lbm import PARTS, LatticeVerification
    from fluxloom.app.verify.poisson import PoissonVerification
    from fluxloom.app.verify.published_airfoils import AirfoilsVerification
    from fluxloom.app.verify.published_walls import WallsVerification
    from fluxloom.app.verify.staggered import StaggeredVerification
    from fluxloom.app.verify.tsunami import TsunamiVerification
    from fluxloom.app.verify.wing import WingVerification

    registry: Registry[Verification] = Registry("verification", group="fluxloom.verifications", error=CaseError)
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
