"""Immersed boundaries: bodies of any shape, at rest, moving or elastic, by forces at markers on their surface."""

from fluxloom.lbm.immersed.boundary import ImmersedBoundary
from fluxloom.lbm.immersed.deltas import PESKIN, ROMA, Delta
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

__all__ = [
    "PESKIN", "ROMA", "Contact", "Deforming", "Delta", "Elastic", "Fixed", "Free", "ImmersedBody", "ImmersedBoundary",
    "Markers", "Pose", "Prescribed", "circle", "curve", "ellipse", "sphere", "surface",
]  # fmt: skip
