"""The Makefile mends an environment that was copied or renamed with its checkout, in paths with spaces too."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PYTHON = """#!/bin/sh
# Stands for Python: makes the folder of an environment, says what it was asked, and is what lies in the environment.
echo "$0 $@" >>"$LOG"
case "$1 $2" in "-m venv")
    for folder; do :; done
    rm -rf "$folder"; mkdir -p "$folder/bin"; cp "$0" "$folder/bin/python"
    echo "command = $0 -m venv --clear $PWD/$folder" >"$folder/pyvenv.cfg";;
esac
exit 0
"""


def make(folder: Path) -> tuple[str, list[str]]:
    """Run ``make demo`` and return what it printed and what Python was asked."""
    log = folder.parent / "log"
    log.write_text("")
    python = folder.parent / "python"
    environment = {**os.environ, "LOG": str(log)}
    done = subprocess.run(
        ["make", "demo", f"PYTHON={python}"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, log.read_text().splitlines()


def built(asked: list[str]) -> bool:
    return any("-m venv --clear .venv" in line for line in asked)


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_an_environment_of_another_place_is_built_anew(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    first = tmp_path / "with a space"
    first.mkdir()
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, first)
    assert built(make(first)[1])
    assert not built(make(first)[1])
    copy = tmp_path / "copied"
    shutil.copytree(first, copy)
    said, asked = make(copy)
    assert built(asked)
    assert str(first / ".venv") in said
    assert asked[-1] == ".venv/bin/python -m fluxloom run examples/airfoil_steady.toml --output build/demo --overwrite"
    assert not built(make(copy)[1])
    renamed = tmp_path / "renamed too"
    first.rename(renamed)
    assert built(make(renamed)[1])
    (tmp_path / "link").symlink_to(renamed)
    assert not built(make(tmp_path / "link")[1])
