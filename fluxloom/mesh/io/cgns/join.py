"""Joining the zones of a CGNS file: points on both sides of a matching interface become one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.mesh.data.mesh import FloatArray
from fluxloom.mesh.io.cgns.zone import Index, Joint, Zone
from fluxloom.mesh.quality.surface import linked_parts

__all__ = ["merge_points"]

_FIT = 1e-6
"""How far the two points of a pair may be apart, as a part of the extent of the interface."""

_SAME = 1e-10
"""The same of points of zones without interfaces, as a part of the extent of the mesh."""


def merge_points(path: str, zones: list[Zone]) -> tuple[Index, Index]:
    """Return which points of all zones are one.

    Points are joined where the file says so; of several zones without any interface, those that coincide.

    Parameters
    ----------
    path
        Of the file, for messages.
    zones
        All zones.

    Returns
    -------
    kept : (n,)
        Points that represent others, or themselves, ascending; they are numbered over all zones.
    number : (points,)
        For each point the position in ``kept`` of the one that represents it.

    Raises
    ------
    MeshError
        When an interface names no zone, or the points on its sides do not lie on one another.
    """
    first = np.cumsum([0, *(len(zone.points) for zone in zones)])
    total = int(first[-1])
    if any(zone.joints for zone in zones):
        pairs = list(_interfaces(path, zones, first))
    elif len(zones) > 1:
        pairs = [_coincident(zones, first)]
    else:
        pairs = []
    if not sum(len(pair) for pair in pairs):
        return np.arange(total), np.arange(total)
    label = linked_parts(total, *np.concatenate(pairs).T)
    kept, number = np.unique(label, return_index=True)[1], label
    order = np.argsort(kept)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return kept[order].astype(np.int64), place[number].astype(np.int64)


def _interfaces(path: str, zones: list[Zone], first: Index) -> Iterator[Index]:
    """Yield pairs of points ``(n, 2)``."""
    places = {_plain(zone.name): k for k, zone in enumerate(zones)}
    for k, zone in enumerate(zones):
        for joint in zone.joints:
            other = places.get(_plain(joint.donor))
            if other is None:
                names = [item.name for item in zones]
                hint = did_you_mean(joint.donor, names)
                raise MeshError(f"{joint.where}: there is no zone {joint.donor!r}{hint} (zones: {', '.join(names)})")
            there = _numbers(joint, zones[other])
            if joint.paired:
                gap = np.linalg.norm(zone.points[joint.mine] - zones[other].points[there], axis=1)
                _check(joint, zone, gap)
            else:
                there = _nearest(joint, zone, zones[other])
            yield np.stack([first[k] + joint.mine, first[other] + there], axis=1)


def _plain(name: str) -> str:
    """Return the name of a zone without blanks, which Gmsh writes in interfaces but not in zones."""
    return name.replace(" ", "_")


def _numbers(joint: Joint, donor: Zone) -> Index:
    """Return the nodes of the donor."""
    if joint.theirs.ndim == 1:
        bad = (
            joint.paired and joint.theirs.size and not 0 <= joint.theirs.min() <= joint.theirs.max() < len(donor.points)
        )
        if bad:
            raise MeshError(f"{joint.where}: points of zone {donor.name!r} that do not exist")
        return joint.theirs
    counts = np.array(donor.counts, dtype=np.int64)
    if counts.size != joint.theirs.shape[1] or (joint.theirs < 0).any() or (joint.theirs >= counts).any():
        raise MeshError(f"{joint.where}: PointRange and Transform lead out of zone {donor.name!r}; mend the interface")
    return joint.theirs @ np.concatenate([[1], np.cumprod(counts[:-1])]).astype(np.int64)


def _check(joint: Joint, zone: Zone, gap: FloatArray) -> None:
    """Raise `MeshError` unless the pairs of an interface lie on one another."""
    own = zone.points[joint.mine]
    extent = float(np.linalg.norm(own.max(axis=0) - own.min(axis=0)))
    if gap.max() > _FIT * extent:
        raise MeshError(
            f"{joint.where}: points on both sides are up to {gap.max():.3g} apart; if the interface is periodic the "
            "file has to say so (Periodic_t), else mend it"
        )


def _nearest(joint: Joint, zone: Zone, donor: Zone) -> Index:
    """Return the points of the donor at those of an interface."""
    from scipy.spatial import KDTree

    gap, there = KDTree(donor.points).query(zone.points[joint.mine])
    _check(joint, zone, np.asarray(gap))
    return np.asarray(there, dtype=np.int64)


def _coincident(zones: list[Zone], first: Index) -> Index:
    """Return pairs of points of different zones that coincide."""
    from scipy.spatial import KDTree

    points = np.concatenate([zone.points for zone in zones])
    zone_of = np.repeat(np.arange(len(zones)), np.diff(first))
    extent = float(np.linalg.norm(points.max(axis=0) - points.min(axis=0)))
    pairs = KDTree(points).query_pairs(_SAME * extent, output_type="ndarray").astype(np.int64).reshape(-1, 2)
    return pairs[zone_of[pairs[:, 0]] != zone_of[pairs[:, 1]]]
