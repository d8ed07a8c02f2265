"""``fluxloom check``: what it refuses as a run does, what it leaves out, and what it says of both."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from fluxloom.cases.files.loading import applications

Call = Callable[..., SimpleNamespace]
Write = Callable[..., Path]

LARGE = (("i = 8", "i = 700"), ("j = 12", "j = 500"))
"""1 050 000 cells."""


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLUXLOOM_TUNING", str(tmp_path / "tuning.json"))


def test_above_a_million_cells_it_says_what_was_not_checked(fluxloom: Call, case_file: Write) -> None:
    done = fluxloom("check", case_file(*LARGE))
    assert done.code == 0
    assert "not checked" in done.out
    assert "--build" in done.out
    assert "chain" not in done.out
    assert "correct, as far as it was checked" in done.err
    whole = fluxloom("check", case_file())
    assert "not checked" not in whole.out
    assert "chain" in whole.out
    assert whole.err.splitlines()[-1].endswith(": correct")
    assert "not checked" in fluxloom("check", case_file(), "--no-build").out


@pytest.mark.parametrize("solver", applications().names())
def test_keys_of_a_solver(solver: str, fluxloom: Call) -> None:
    """Its name is enough, also where a case needs keys that have no default."""
    done = fluxloom("check", "--keys", solver)
    assert done.code == 0
    assert "[checkpoint]" in done.out


def test_nothing_is_written(fluxloom: Call, case_file: Write, tmp_path: Path) -> None:
    case = case_file()
    assert fluxloom("check", case).code == 0
    assert list(tmp_path.iterdir()) == [case]


@pytest.mark.parametrize(
    ("change", "package", "what"),
    [
        ("", "matplotlib", "pictures"),
        ('[output]\nformat = "vtkhdf"\n', "h5py", "final fields in VTKHDF"),
        ("", "h5py", "written as VTU"),
    ],
)
def test_missing_packages_are_named(
    change: str, package: str, what: str, fluxloom: Call, case_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_file()
    case.write_text(case.read_text() + change)
    assert "missing" not in fluxloom("check", case, "--no-build").out
    monkeypatch.setitem(sys.modules, package, None)
    done = fluxloom("check", case, "--no-build")
    assert done.code == 0
    (line,) = [line for line in done.out.splitlines() if line.startswith("missing")]
    assert f"{package}, for " in line
    assert what in line
    assert "pip install" in line


def test_no_picture_needs_no_package(fluxloom: Call, case_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    case = case_file()
    case.write_text(case.read_text() + "[output]\npicture = false\n")
    assert "missing" not in fluxloom("check", case, "--no-build").out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('ranks = "cpu:1*2"\n[partition]\nshares = [3, 1, 1]\n', "3 numbers for 2 ranks"),
        ('ranks = "cpu:1,reference"\n', "runs on one rank only"),
        ('device = "reference"\ntune = "startup"\n', "run.tune"),
        ('[output]\ndirectory = "case.toml"\n', "there is a file of that name in the way"),
        ('[output]\ndirectory = "case.toml/below"\n', "there is a file of that name in the way"),
    ],
)
def test_what_a_run_refuses_is_refused(change: str, message: str, fluxloom: Call, case_file: Write) -> None:
    case = case_file()
    case.write_text(case.read_text().replace("threads = 1\n", "") + change)
    for verb in ("check", "run"):
        done = fluxloom(verb, case)
        assert done.code == 2, (verb, done.text)
        assert message in done.err.replace("\n", " "), verb
