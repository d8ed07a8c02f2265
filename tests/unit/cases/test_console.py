"""Tables on consoles."""

from __future__ import annotations

import pytest

from fluxloom.cli.console import table


@pytest.mark.parametrize("terminal", [{}, {"TERM": "dumb", "TTY_COMPATIBLE": "1", "FORCE_COLOR": "1"}])
def test_numbers_are_never_cut_in_files(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: dict[str, str]
) -> None:
    """Where the output is no terminal, or only seems to be one, a row is one line with all its numbers."""
    for name, value in ({"COLUMNS": "60"} | terminal).items():
        monkeypatch.setenv(name, value)
    numbers = [f"{3147.0 + column:.4f}" for column in range(40)]
    table("wide", ["name", *(f"column {n}" for n in range(40))], [["first of all rows", *numbers]])
    lines = capsys.readouterr().out.splitlines()
    (row,) = (line for line in lines if line.startswith("first"))
    assert row.split() == ["first", "of", "all", "rows", *numbers]
