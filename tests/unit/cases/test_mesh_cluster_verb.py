"""The verb ``fluxloom mesh cluster``: it writes a mesh, and refuses in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from fluxloom.cli.verbs.mesh_cluster import command
from fluxloom.core.errors import CaseError
from fluxloom.mesh import box2d, read_data, write


def test_writes_a_mesh(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(command)
    write(tmp_path / "box.su2", box2d(4, 5))
    words = [str(tmp_path / "box.su2"), str(tmp_path / "thin.su2"), "--wall", "ymin", "--first", "0.001"]
    found = CliRunner().invoke(app, [*words, "--layers", "0", "--growth", "1.3"])
    assert found.exit_code == 0, found.output
    mesh = read_data(tmp_path / "thin.su2")
    assert mesh.n_cells == 4 * 22
    assert sorted(mesh.patches) == ["xmax", "xmin", "ymax", "ymin"]
    missing = [words[0], str(tmp_path / "none" / "thin.su2"), *words[2:]]
    with pytest.raises(CaseError, match="does not exist"):
        CliRunner().invoke(app, missing, catch_exceptions=False)
