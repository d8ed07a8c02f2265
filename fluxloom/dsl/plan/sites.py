"""The knob ``sites``: neighbouring sites of a grid that one work item handles."""

from __future__ import annotations

from fluxloom.core.errors import PlanError
from fluxloom.dsl.declare.sets import Grid
from fluxloom.dsl.plan.bind import Bound, Numbering, specialise

__all__ = ["SITES_BLOCK", "allowed", "choose_sites", "require_sites"]

SITES_BLOCK = {2: 256, 4: 128}
"""Work items a group where an item has several sites, by their number."""


def choose_sites(bound: Bound, wanted: int) -> int:
    """Return how many sites of a grid an item handles."""
    from fluxloom.codegen.grids.sites import sites_of

    over = bound.over
    return sites_of(specialise(bound, Numbering()), over.shape[-1], wanted) if isinstance(over, Grid) else 1


def require_sites(bound: Bound, wanted: int) -> None:
    """Raise `PlanError` when a loop itself was asked to have several sites an item, where items are, and cannot."""
    if wanted >= 2 and bound.over.context.device.items and (reason := _why_one(bound, wanted)):
        raise PlanError(f"{bound.name}: {wanted} sites an item are not possible: {reason}")


def allowed(bound: Bound) -> tuple[int, ...]:
    """Return the numbers of sites that a search may try; none where there is no choice."""
    from fluxloom.codegen.grids.sites import SITES

    found = tuple(n for n in SITES if not _why_one(bound, n))
    return found if len(found) > 1 else ()


def _why_one(bound: Bound, count: int) -> str:
    """Return why an item cannot handle so many sites; empty when it can."""
    if not isinstance(bound.over, Grid):
        return "it does not run over all of a grid"
    from fluxloom.codegen.grids.sites import why_one_site

    return why_one_site(specialise(bound, Numbering()), bound.over.shape[-1], count)
