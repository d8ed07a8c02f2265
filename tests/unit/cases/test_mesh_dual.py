"""``fluxloom mesh dual``: polyhedra from tetrahedra, checked and described."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Protocol

import pytest

from fluxloom.mesh import box3d, check, read_data, write


class Call(Protocol):
    def __call__(self, *words: object) -> SimpleNamespace: ...


def test_dual(fluxloom: Call, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    coarse, new = tmp_path / "box.su2", tmp_path / "dual.vtkhdf"
    write(coarse, box3d(2, 2, 1, kind="tetra"))
    done = fluxloom("mesh", "dual", coarse, new)
    assert done.code == 0
    assert "18 cells" in done.err
    mesh = read_data(new)
    assert check(mesh).elements == {"polyhedron": 18}
    assert check(mesh).volume_total == pytest.approx(1.0, rel=1e-14)
    assert list(mesh.patches) == ["xmin", "xmax", "ymin", "ymax", "zmin", "zmax"]
    assert "18 polyhedron" in fluxloom("mesh", "info", new).out
    said = fluxloom("mesh", "check", new)
    assert said.code == 0
    assert "closure" in said.out
    refused = fluxloom("mesh", "refine", new, tmp_path / "fine.vtkhdf")
    assert refused.code != 0
    assert "refinement is there for triangles" in refused.err
