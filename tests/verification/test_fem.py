"""The verification ``fem``: what it is made of, and with ``long`` the whole."""

from __future__ import annotations

from math import log2

import pytest

from fluxloom.dsl.context import Context
from fluxloom_lab.studies.fem_traffic import PUBLISHED
from fluxloom_lab.verify.base import FullOptions
from fluxloom_lab.verify.fem import FAMILIES, differences, solution_error, space_on, traffic
from fluxloom_lab.verify.registry import verifications


def test_order_and_formats() -> None:
    """Of quads of order 1: the error falls with h^2, all forms have the same product."""
    context = Context("reference")
    family = FAMILIES[0]
    first, second = (solution_error(space_on(context, family, n)) for n in (4, 8))
    assert log2(first / second) == pytest.approx(2.0, abs=0.15)
    found = differences(space_on(context, family, 3))
    assert len(found) == 7
    assert max(found.values()) < 1e-13


def test_traffic() -> None:
    """The words of the study are its table; accesses of loops come near on a mesh whose boundary is a small part."""
    found = traffic(Context("reference"), 1, 48)
    assert found.keys() == PUBLISHED.keys()
    for key, (words, accessed, useful) in found.items():
        assert words == pytest.approx(PUBLISHED[key][0], abs=0.006)
        assert accessed == pytest.approx(PUBLISHED[key][0], rel=0.1)
        assert 0.4 < useful < 1.5


@pytest.mark.long
def test_verification() -> None:
    checks = list(verifications()["fem"].run(FullOptions(threads=1, full=True), lambda _line: None))
    assert len(checks) > 90
    assert [check for check in checks if not check.ok] == []
