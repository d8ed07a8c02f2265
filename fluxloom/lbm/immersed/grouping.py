"""Bodies by the way they move."""

from __future__ import annotations

from collections.abc import Sequence

from fluxloom.lbm.immersed.data import Fields
from fluxloom.lbm.immersed.deltas import Delta
from fluxloom.lbm.immersed.elastic import ElasticGroup
from fluxloom.lbm.immersed.groups import FixedGroup, Group
from fluxloom.lbm.immersed.motion import Contact, Deforming, Elastic, Fixed, Free, ImmersedBody, Prescribed
from fluxloom.lbm.immersed.moving import DeformingGroup, RigidGroup

__all__ = ["group_bodies"]


def group_bodies(
    fields: Fields, bodies: Sequence[ImmersedBody], delta: Delta, weights: str, contact: Contact | None, *,
    scattered: bool,
) -> list[Group]:  # fmt: skip
    """Return the groups of some bodies, elastic ones first."""
    kinds = ((Elastic,), (Fixed,), (Prescribed, Free), (Deforming,))
    elastic, fixed, rigid, deforming = ([b for b in bodies if isinstance(b.motion, kind)] for kind in kinds)
    found: list[Group] = []
    if elastic:
        found.append(ElasticGroup(fields, elastic, delta))
    if fixed:
        found.append(FixedGroup(fields, fixed, delta, weights, scattered=scattered))
    if rigid:
        found.append(RigidGroup(fields, rigid, delta, contact))
    if deforming:
        found.append(DeformingGroup(fields, deforming, delta))
    return found
