"""Everything in Python and TOML in README.md and docs/ runs as it is printed, and does what its page says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.cells.labels import labels_of
from fluxloom.mesh import read_fields
from tests.conftest import ROOT
from tests.pages import PAGES, blocks, run_page

EXTEND = Path(__file__).with_name("test_extend.py")
LONG = {"docs/guide/finite_elements.md", "docs/guide/lattice.md", "docs/guide/starts.md"}
NOT_RUN = {
    "two groups are of two ranks: tests/parallel/test_two_level.py",
    "four groups are of four ranks: tests/parallel/test_extruded_ranks.py",
}


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


RUN = [
    pytest.param(page, id=named(page), marks=[pytest.mark.long] if named(page) in LONG else [])
    for page in PAGES if blocks(page) and page.parent.name != "extend"
]  # fmt: skip


@pytest.mark.parametrize("page", RUN)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    names = run_page(page, tmp_path, monkeypatch)
    check = CHECKS.get(named(page))
    if check is not None:
        check(names, capsys.readouterr().out)


def test_pages_on_extending_have_tests() -> None:
    tested = set(re.findall(r'files_of\("(\w+\.md)"', EXTEND.read_text(encoding="utf-8"))) | {"matrix_format.md"}
    assert tested == {page.name for page in PAGES if page.parent.name == "extend"}


def test_every_example_is_listed() -> None:
    listed = set(re.findall(r"(?m)^\| `(\w+\.toml)` \|", (ROOT / "examples" / "README.md").read_text(encoding="utf-8")))
    assert listed == {path.name for path in (ROOT / "examples").glob("*.toml")}


def test_few_blocks_are_not_run() -> None:
    assert {block.reason for page in PAGES for block in blocks(page)} - {""} == NOT_RUN


def _readme(names: dict[str, Any], said: str) -> None:
    """The ring keeps its heat and its warmest node cools; the cavity comes to its end."""
    values = names["u"].read()
    assert values.sum() == pytest.approx(0.0, abs=1e-12)
    # Each mode decays by 1 - dt nu (2 - 2 cos(2 pi / n)) / |edge| a step.
    n = values.size
    decay = 1 - 1e-3 * 0.1 * (2 - 2 * np.cos(2 * np.pi / n)) / (2 * np.sin(np.pi / n))
    assert values[0] == pytest.approx(decay**100, rel=1e-12)
    assert said.startswith("end reached")


def _how_it_works(names: dict[str, Any], said: str) -> None:
    """The excerpts on the page are what its program prints and generates."""
    text = (ROOT / "docs" / "how_it_works.md").read_text(encoding="utf-8")
    printed, chosen = re.findall(r"(?ms)^```text\n(.*?)^```", text)[:2]
    assert re.sub("line=[0-9]+", "", printed) in re.sub("line=[0-9]+", "", said)
    source = names["flux"].source
    for line in re.findall(r"(?m)^        (?:d[xy]|f|v_r_\d_0)_? = .*", text):
        assert line in source
    assert chosen.splitlines()[0] in said


def _strategies(_: dict[str, Any], said: str) -> None:
    """Fields are printed by their paths, and values that can be checked by hand."""
    lines = said.splitlines()
    assert lines[0] == "{'flux_dissipation': 1.0, 'flux_law_speed': 2.0}"
    assert float(lines[1]) < 1e-4  # of third order: (2 pi / 100)^3 / 16
    assert float(lines[2]) == 2.0 * 1.5 + 0.5 * 4.0
    assert lines[3] == "[1.5 2.5]"


def _finite_elements(_: dict[str, Any], said: str) -> None:
    """Errors in L2 are those of its mesh, products of all formats agree."""
    lines = said.splitlines()
    assert len(lines) == 5
    iterations, error = lines[0].split()
    assert int(iterations) < 200
    assert float(error) == pytest.approx(1.2789e-7, rel=1e-3)
    assert float(lines[1]) == pytest.approx(1.8825e-7, rel=1e-3)
    assert max(float(word) for word in lines[2].strip("[]").split(",")) < 1e-13
    assert lines[3] == "block_colour"
    assert int(lines[4]) < 40


def _compressible(_: dict[str, Any], said: str) -> None:
    assert "Coefficients(drag=" in said


def _lattice(names: dict[str, Any], _: str) -> None:
    """The foam is a third of the rod, a sheet of a gyroid; disks have drag, that in physical units a torque too."""
    box = Box((24, 48, 48), (True, False, False))
    labels = labels_of(box, [names["foam"].shape])[box.inside] == 1
    rod = labels_of(box, [names["rod"]])[box.inside] == 1
    assert not labels[~rod].any()
    assert 0.3 < np.count_nonzero(labels) / np.count_nonzero(rod) < 0.5
    assert names["flow"].steps == 400
    assert len(names["drag"]) == 4
    assert min(names["drag"]) > 0
    assert names["forces"].cd > 1.0
    assert np.isfinite(names["forces"].moment[2])


def _results(_: dict[str, Any], said: str) -> None:
    assert "40 cells, depth from 1.000 to 1.500 m" in said
    assert "t = 0.5 s, elevation up to 0.500 m at 33 nodes" in said
    listed = json.loads(Path("results/dam/snapshot.vtkhdf.series").read_text())["files"]
    assert [item["time"] for item in listed] == pytest.approx([0.25, 0.5])
    assert "snapshot.vtkhdf.series" in json.loads(Path("results/dam/run.json").read_text())["files"]
    with pytest.raises(MeshError, match="there is no step 1"):
        read_fields("results/dam/final.vtkhdf", step=1)


CHECKS: dict[str, Callable[[dict[str, Any], str], None]] = {
    "README.md": _readme,
    "docs/guide/compressible.md": _compressible,
    "docs/guide/finite_elements.md": _finite_elements,
    "docs/guide/lattice.md": _lattice,
    "docs/guide/results.md": _results,
    "docs/guide/strategies.md": _strategies,
    "docs/how_it_works.md": _how_it_works,
}
