"""Immersed boundaries: bodies of any shape, at rest, moving or elastic, by forces at markers on their surface.

Read `boundary` (direct forcing) and `markers` first, then `motion`, `groups` and `attached` (bodies that move alike),
`newton` and `elastic` (free and elastic bodies), `pipeline` (markers on the host while the device steps).
"""

from fluxloom.lbm.immersed.boundary import ImmersedBoundary
from fluxloom.lbm.immersed.markers.deltas import Delta, Peskin, Roma
from fluxloom.lbm.immersed.markers.places import Markers, circle, curve, ellipse, sphere, surface
from fluxloom.lbm.immersed.markers.spreading import Balanced, MarkerWeights, Pinelli, Plane
from fluxloom.lbm.immersed.motion import (
    Contact,
    Deforming,
    Elastic,
    Fixed,
    Free,
    ImmersedBody,
    Pose,
    Prescribed,
)
from fluxloom.lbm.immersed.pipelines import Fastest, OnDevice, OnHost, Pipeline

__all__ = [
    "Balanced", "Contact", "Deforming", "Delta", "Elastic", "Fastest", "Fixed", "Free", "ImmersedBody",
    "ImmersedBoundary", "MarkerWeights", "Markers", "OnDevice", "OnHost", "Peskin", "Pinelli", "Pipeline", "Plane",
    "Pose", "Prescribed", "Roma", "circle", "curve", "ellipse", "sphere", "surface",
]  # fmt: skip
