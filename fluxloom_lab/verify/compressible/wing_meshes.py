"""Meshes of our own round the ONERA M6 wing, for turbulent flow."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

import numpy as np

from fluxloom_lab.problems.wing import WingMesh
from fluxloom_lab.problems.wing_surface import WingShape
from fluxloom_lab.verify.compressible.wing_case import PLANFORM

__all__ = ["SIZES", "wing_shape"]

SIZES: Mapping[str, WingMesh] = MappingProxyType(
    {
        "coarse": WingMesh(40, 20, 24, 48, first=3e-6, nose=0.002, edge=0.004, tip=0.0025),
        "medium": WingMesh(72, 32, 40, 64, first=2e-6, nose=0.0014, edge=0.003, tip=0.0015),
        "fine": WingMesh(112, 48, 64, 88, first=2e-6, nose=0.001, edge=0.002, tip=0.001),
    }
)
"""Sizes of the meshes: 138 240, 532 480, 1 802 240 hexahedra."""


def wing_shape() -> WingShape:
    """Return the wing with its sharp trailing edge: the chords are 0.57 per cent longer than the published ones."""
    table = files("fluxloom_lab.verify").joinpath("onera_m6_section.csv").read_text(encoding="utf-8")
    section = np.loadtxt(table.splitlines(), delimiter=",")
    return WingShape(section, PLANFORM)
