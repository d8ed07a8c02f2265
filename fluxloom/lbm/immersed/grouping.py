"""Bodies by the way they move."""

from __future__ import annotations

from fluxloom.lbm.immersed.elastic import ElasticGroup
from fluxloom.lbm.immersed.forcing import Forcing
from fluxloom.lbm.immersed.groups import FixedGroup, Group
from fluxloom.lbm.immersed.markers.data import Fields
from fluxloom.lbm.immersed.motion import Deforming, Elastic, Fixed, Free, Prescribed
from fluxloom.lbm.immersed.moving import DeformingGroup, RigidGroup

__all__ = ["group_bodies"]


def group_bodies(fields: Fields, forcing: Forcing) -> list[Group]:
    """Return the groups of some bodies, elastic ones first."""
    kinds = ((Elastic,), (Fixed,), (Prescribed, Free), (Deforming,))
    elastic, fixed, rigid, deforming = ([b for b in forcing.bodies if isinstance(b.motion, kind)] for kind in kinds)
    found: list[Group] = []
    if elastic:
        found.append(ElasticGroup(fields, elastic, forcing.delta))
    if fixed:
        weights = forcing.weights_in(fields.box.dimensions)
        found.append(FixedGroup(fields, fixed, forcing.delta, weights, scattered=forcing.scattered))
    if rigid:
        found.append(RigidGroup(fields, rigid, forcing.delta, forcing.contact))
    if deforming:
        found.append(DeformingGroup(fields, deforming, forcing.delta))
    return found
