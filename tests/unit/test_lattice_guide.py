"""What the guide to lattice Boltzmann flow says of bodies."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from fluxloom.app.cases.lattice_body_tables import LatticeBodyTable
from fluxloom.lbm.box import Box
from fluxloom.lbm.labels import labels_of

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "lattice.md"


def part() -> str:
    """Return the text on bodies."""
    return GUIDE.read_text("utf-8").split("## Bodies\n")[1].split("\n## ")[0]


def test_tables() -> None:
    """The tables are correct."""
    blocks = re.findall(r"```toml\n(.*?)```", part(), re.DOTALL)
    tables = [table for block in blocks for table in tomllib.loads(block)["body"].values()]
    assert [LatticeBodyTable.model_validate(table).shape for table in tables] == ["surface", "implicit"]


def test_foam() -> None:
    """The body of the program is a third of the rod: a sheet of a gyroid."""
    names: dict[str, Any] = {}
    (block,) = re.findall(r"```python\n(.*?)```", part(), re.DOTALL)
    exec(compile(block, str(GUIDE), "exec"), names)
    box = Box((24, 48, 48), (True, False, False))
    labels = labels_of(box, [names["foam"].shape])[box.inside] == 1
    rod = labels_of(box, [names["rod"]])[box.inside] == 1
    assert not labels[~rod].any()
    assert 0.3 < np.count_nonzero(labels) / np.count_nonzero(rod) < 0.5
