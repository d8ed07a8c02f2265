"""Tiles of fused loops: what they keep for themselves fits on the stack of a thread."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fluxloom.codegen.language.group import CHUNK
from fluxloom.dsl.run.fusion import FusedGroups

MOST = 2**20


@pytest.mark.parametrize("components", [1, 5, 19, 100])
def test_buffers_of_a_tile_fit_on_the_stack(components: int) -> None:
    groups: Any = FusedGroups.__new__(FusedGroups)
    groups.device = SimpleNamespace(items=False)
    dat = SimpleNamespace(dim=components, scalar=SimpleNamespace(size=8))
    wish = SimpleNamespace(schedule=SimpleNamespace(strategy="gather", block=2**30))
    fused = SimpleNamespace(scatter=[wish], incremented=lambda: [dat], own=lambda _accesses: [dat])
    tile = groups._tile(fused)
    assert tile % CHUNK == 0
    assert MOST - 8 * components * CHUNK < 8 * components * tile <= MOST
