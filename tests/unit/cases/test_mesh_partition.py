"""``fluxloom mesh partition``: tables, records, files and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fluxloom.mesh import box2d, read_fields, write
from fluxloom.mesh.geometry.connectivity import connectivity

Call = Callable[..., SimpleNamespace]


@pytest.fixture
def box(tmp_path: Path) -> Path:
    path = tmp_path / "box.vtkhdf"
    write(path, box2d(12, 10))
    return path


def row(text: str, *words: str) -> list[str]:
    """Return the words of the line of a table that begins with some words."""
    return next(line.split() for line in text.splitlines() if line.split()[: len(words)] == list(words))


def test_every_rank_is_shown(fluxloom: Call, box: Path) -> None:
    done = fluxloom("mesh", "partition", box, "--parts", 2, "--method", "rcb", "--show")
    assert done.code == 0, done.text
    assert f"{box}: 120 cells" in done.out
    assert "2 by rcb" in done.out
    assert "10 face_cells" in done.out
    # Two halves of 6 x 10 squares: ten cells of each touch the other half.
    halves = [row(done.out, "cells", str(rank)) for rank in range(2)]
    assert [half[2:4] for half in halves] == [["60", "50"]] * 2
    assert [half[-1] for half in halves] == ["1", "0"]


def test_summary_of_all_ranks(fluxloom: Call, box: Path) -> None:
    done = fluxloom("mesh", "partition", box, "--parts", 3, "--shares", "0.5,0.25,0.25", "--method", "rcb")
    assert done.code == 0, done.text
    assert row(done.out, "cells")[1:5] == ["120", "30", "...", "60"]
    assert row(done.out, "imbalance") == ["imbalance", "0.00", "%"]


@pytest.mark.parametrize("shape", ["file", "airfoil:6x8"])
def test_record_and_mesh_with_parts(fluxloom: Call, box: Path, tmp_path: Path, shape: str) -> None:
    record, target = tmp_path / "p.json", tmp_path / "parts.vtkhdf"
    name = str(box) if shape == "file" else shape
    done = fluxloom("mesh", "partition", name, "--parts", 3, "--method", "kway", "--json", record, "-o", target)
    assert done.code == 0, done.text
    found = json.loads(record.read_text())
    assert (found["file"], found["ranks"], found["method"]) == (name, 3, "kway")
    cells = next(item for item in found["sets"] if item["name"] == "cells")
    assert sum(cells["owned"]) == cells["total"]
    assert len(found["neighbours"]) == 3
    fields = read_fields(target)
    counts = np.bincount(fields.cell_data["part"], minlength=3)
    np.testing.assert_array_equal(counts, cells["owned"])
    links = connectivity(fields.mesh)
    sides = fields.cell_data["part"][links.interior_cells]
    assert (sides[:, 0] != sides[:, 1]).sum() == found["edge_cut"]
    assert list(fields.mesh.patches)


def test_one_part(fluxloom: Call, box: Path) -> None:
    done = fluxloom("mesh", "partition", box, "--parts", 1, "--show")
    assert done.code == 0, done.text
    assert row(done.out, "cells", "0")[2:] == ["120", "120", "0", "0", "none"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--parts", "2", "--method", "kwy"), "unknown method 'kwy'; did you mean 'kway'?"),
        (("--parts", "2", "--shares", "1"), "give 2 positive numbers"),
        (("--parts", "2", "--shares", "1,-1"), "give 2 positive numbers"),
        (("--parts", "2", "--shares", "1,nan"), "give 2 positive numbers"),
        (("--parts", "2", "--shares", "inf,1"), "give 2 positive numbers"),
        (("--parts", "2", "--shares", "1,1e-300"), "a share is less than 1e-06 of the largest"),
        (("--parts", "0"), "Invalid value for '--parts'"),
        (("--parts", "121"), "--parts 121: the mesh has 120 cells; give at most 120 parts"),
        (("--parts", "1000000000"), "give at most 120 parts"),
        (("--parts", "2", "--json", "/dev/null/a.json"), "/dev/null/a.json: the directory /dev/null cannot be made"),
        (("--parts", "2", "-o", "/dev/null/a.vtu"), "/dev/null/a.vtu: the directory /dev/null cannot be made"),
        (("--parts", "2", "-o", "a.su2"), "this format holds no data"),
    ],
)
def test_wrong_options(fluxloom: Call, box: Path, words: tuple[str, ...], message: str) -> None:
    done = fluxloom("mesh", "partition", box, *words)
    assert done.code != 0
    assert message in done.err.replace("\n", " ")
    assert "Traceback" not in done.text


def test_wrong_meshes(fluxloom: Call, tmp_path: Path) -> None:
    assert "no such mesh file" in fluxloom("mesh", "partition", tmp_path / "no.su2", "--parts", 2).err
    assert "is a directory; name a mesh file" in fluxloom("mesh", "partition", tmp_path, "--parts", 2).err
    assert "more nodes than the 2,147,483,648" in fluxloom("mesh", "partition", "airfoil:99999x99999", "--parts", 2).err
    assert "give 2 positive whole numbers" in fluxloom("mesh", "partition", "airfoil:6", "--parts", 2).err


@pytest.mark.parametrize("name", ["m.su2", "m.msh", "m.vtu", "m.vtkhdf"])
@pytest.mark.parametrize("damage", ["empty", "text", "half", "bytes"])
def test_damaged_meshes(fluxloom: Call, box: Path, tmp_path: Path, name: str, damage: str) -> None:
    """One line that names the file, whatever is wrong with it."""
    path = tmp_path / name
    assert fluxloom("mesh", "convert", box, path).code == 0
    whole = path.read_bytes()
    third = len(whole) // 3
    swapped = bytes((7 * byte + 13) % 256 for byte in whole[third : third + 200])
    texts = {"empty": b"", "text": b"hello\nworld\n", "half": whole[: len(whole) // 2],
             "bytes": whole[:third] + swapped + whole[third + 200 :]}  # fmt: skip
    path.write_bytes(texts[damage])
    done = fluxloom("mesh", "partition", path, "--parts", 2)
    assert done.code == 2
    assert done.err.startswith(f"error: {path}:")
    assert "Traceback" not in done.text
