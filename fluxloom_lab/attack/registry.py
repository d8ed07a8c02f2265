"""The known attacks; a registry so that others plug in."""

from __future__ import annotations

from fluxloom.core.errors import CaseError
from fluxloom.core.registry import Registry
from fluxloom_lab.attack.frame import Attacks

__all__ = ["attacks"]


def attacks() -> Registry[Attacks]:
    """Return the known groups of attacks, open to the entry points ``fluxloom.attacks``."""
    registry: Registry[Attacks] = Registry("group of attacks", group="fluxloom.attacks", error=CaseError)
    registry.place("faults", "fluxloom_lab.attack.faults:FAULTS")
    registry.later("cases", "fluxloom_lab.attack.cases:cases")
    registry.later("kernels", "fluxloom_lab.attack.kernels:kernels")
    registry.later("meshes", "fluxloom_lab.attack.meshes:meshes")
    registry.later("readers", "fluxloom_lab.attack.readers:readers")
    return registry
