"""A few trials of each attack: what any of them found is mended."""

from __future__ import annotations

import pytest

from tests.attacked import attacked


@pytest.mark.parametrize(("group", "options"), [
    ("readers", "--only su2,cgns,vt*,abaqus,s[ct]*,tables,rasters,tunings --trials 1 --seed 5"),
    ("cases", "--only cases --trials 3"),
    ("cases", "--only formulas --trials 20"),
    ("kernels", "--only chains,tiles,ranks --trials 1"),
    ("meshes", "--only incompressible,water --trials 1"),
])  # fmt: skip
def test_some_trials(group: str, options: str) -> None:
    attacked(group, *options.split())
