"""Verbs of other packages: found by their entry points, beside ours, and told apart when they are not there."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from fluxloom.cli.commands import GROUP
from fluxloom.cli.main import main

MODULE = """
from typing import Annotated

import typer

def weigh(mesh: str, grams: Annotated[bool, typer.Option("--grams", help="In grams.")] = False) -> None:
    \"\"\"Weigh a mesh.\"\"\"
    print(mesh, "weighs", "7 g" if grams else "nothing")

grow = typer.Typer(help="Grow meshes.")

@grow.command()
def trees(count: int) -> None:
    print(count, "trees")

@grow.command()
def reeds() -> None:
    print("reeds")
"""

ENTRIES = """
[fluxloom.commands]
weigh = scales:weigh
grow = scales:grow
lost = scales_that_are_gone:command
run = scales:weigh
"""


@pytest.fixture
def scales(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that declares verbs: two that work, one that cannot be imported, and one of our own names."""
    (tmp_path / "scales.py").write_text(MODULE)
    folder = tmp_path / "scales-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: scales\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("scales")
def test_verbs_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    """A function and an application of Typer are verbs like ours; ours cannot be replaced."""
    assert main(["weigh", "box.msh", "--grams"]) == 0
    assert main(["grow", "trees", "3"]) == 0
    assert capsys.readouterr().out == "box.msh weighs 7 g\n3 trees\n"
    assert main(["run", "--help"]) == 0
    assert "Run a case file" in capsys.readouterr().out


@pytest.mark.usefixtures("scales")
def test_help_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    """One that cannot be imported is listed as such, and hides no other."""
    assert main(["--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "weigh Weigh a mesh." in told
    assert "grow Grow meshes." in told
    assert "lost (cannot be imported: ModuleNotFoundError: No module named 'scales_that_are_gone')" in told
    with pytest.raises(ModuleNotFoundError):
        main(["lost"])


def test_the_laboratory_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Who asks for its verbs hears what to do; the others work, and are all that is listed."""
    entries = importlib.metadata.EntryPoints()
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: entries)
    for verb in ("bench", "lab", "verify"):
        assert main([verb, "list"]) == 2
        assert f"the verb {verb} is part of the laboratory (fluxloom_lab)" in capsys.readouterr().err
    assert main(["--help"]) == 0
    assert "bench" not in capsys.readouterr().out
    assert main(["devices", "--help"]) == 0


def test_the_laboratory_is_declared() -> None:
    """What is installed declares it; where this fails, the environment is older than `pyproject.toml`: make env."""
    declared = {entry.name: entry.value for entry in importlib.metadata.entry_points(group=GROUP)}
    places = {verb: f"fluxloom_lab.cli.{verb}:command" for verb in ("bench", "lab", "verify")}
    assert declared | places == declared, "install Fluxloom again (make env): its entry points are read then"
