"""Immersed boundaries: bodies of any shape, at rest, moving or elastic, by forces at markers on their surface."""

from fluxloom.lbm.immersed.boundary import ImmersedBoundary
from fluxloom.lbm.immersed.deltas import Delta, Peskin, Roma
from fluxloom.lbm.immersed.markers import Markers, circle, curve, ellipse, sphere, surface
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
from fluxloom.lbm.immersed.spreading import Balanced, MarkerWeights, Pinelli, Plane

__all__ = [
    "Balanced", "Contact", "Deforming", "Delta", "Elastic", "Fastest", "Fixed", "Free", "ImmersedBody",
    "ImmersedBoundary", "MarkerWeights", "Markers", "OnDevice", "OnHost", "Peskin", "Pinelli", "Pipeline", "Plane",
    "Pose", "Prescribed", "Roma", "circle", "curve", "ellipse", "sphere", "surface",
]  # fmt: skip
