"""The loop over cells is no part of the package: by its place case files find it, and a loop has to be one."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fluxloom.core.errors import FluxloomError
from fluxloom.core.strategies import strategy_class, strategy_words
from fluxloom.solvers.compressible.scheme import CompressibleScheme, FluxLoops, OverFaces
from fluxloom_lab.strategies.cell_loop import OverCells

PLACE = "fluxloom_lab.strategies.cell_loop:OverCells"


def test_found_by_its_place() -> None:
    assert strategy_class(FluxLoops, PLACE) is OverCells
    assert strategy_words(CompressibleScheme(loops=OverCells()).loops) == {"type": PLACE}
    assert CompressibleScheme().loops == OverFaces()
    with pytest.raises(FluxloomError, match="a frozen dataclass that derives from FluxLoops is wanted"):
        strategy_class(FluxLoops, "fluxloom_lab.strategies.cell_loop:residual")


def test_a_member_has_to_have_loops() -> None:
    @dataclass(frozen=True)
    class Nothing(FluxLoops):
        """Nothing."""

    with pytest.raises(NotImplementedError, match="Nothing has to define loops"):
        Nothing().loops(None, None)  # type: ignore[arg-type]
