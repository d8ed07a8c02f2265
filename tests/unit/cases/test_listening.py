"""What the command line says while a case is built."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.cli.console import Listening
from fluxloom.core.activity import activity
from fluxloom.dsl.context import Context


class Told:
    """Lines, and a way to wait for the next one."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._new = threading.Condition()

    def __call__(self, line: str) -> None:
        with self._new:
            self.lines.append(line)
            self._new.notify_all()

    def wait(self, begins: str) -> str:
        """Return the first line that begins so."""

        def found() -> str:
            return next((line for line in self.lines if line.startswith(begins)), "")

        with self._new:
            self._new.wait_for(found, timeout=60)
            return found()


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_slow_stage_is_named() -> None:
    told = Told()
    with Listening(told, every=0.02):
        with activity("levels", "level 3, 41,200 rows"):
            assert told.wait("levels: level 3, 41,200 rows (") == "levels: level 3, 41,200 rows (0 s)"
            with activity("loops", total=40) as loops:
                loops.step(12)
                assert told.wait("levels: level 3, 41,200 rows; loops: 12 of 40 (")
        assert told.wait("working (")


def test_lines_say_how_long_and_which_time() -> None:
    clock = Clock()
    ear = Listening(Told(), every=60, clock=clock)
    with ear:
        clock.now += 14
        assert ear.line() == "working (14 s)"
        for name in ("first", "second"):
            with activity("compiling", name, again=True):
                clock.now += 6
                assert ear.line() == f"compiling: {name}, number {1 if name == 'first' else 2} (6 s)"
    with ear:
        assert ear.line() == "working (0 s)"


def test_what_is_quick_or_told_otherwise_is_not_named() -> None:
    """Lines depend on the time since the last one alone, whoever printed that."""
    told, clock = Told(), Clock()
    with Listening(told, every=0.02, clock=clock) as ear:
        for number in range(3):
            clock.now += 0.015
            ear.tell(f"tuning {number + 1} of 3")
        threading.Event().wait(0.1)
        assert told.lines == ["tuning 1 of 3", "tuning 2 of 3", "tuning 3 of 3"]
        clock.now += 1
        assert told.wait("working (1 s)")
        ear.close()
        clock.now += 100
        threading.Event().wait(0.1)
    assert len(told.lines) == 4


def test_other_ranks_and_a_closed_screen_are_silent() -> None:
    def closed(line: str) -> None:
        asked.set()
        raise BrokenPipeError

    asked = threading.Event()
    with Listening(None, every=0.001), activity("work") as work:
        work.step()
        assert work.done == 0
    with Listening(closed, every=0.001):
        assert asked.wait(60)


def test_the_environment_says_how_long_silence_may_be(
    fluxloom: Callable[..., SimpleNamespace], case_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_file()
    quiet = fluxloom("check", case, "--no-build")
    assert len(quiet.err.splitlines()) == 1
    monkeypatch.setenv("FLUXLOOM_SILENCE", "0.001")
    talking = fluxloom("check", case)
    assert talking.code == 0
    assert len(talking.err.splitlines()) > 1
    assert "building: tiny" not in talking.out
    monkeypatch.setenv("FLUXLOOM_SILENCE", "often")
    refused = fluxloom("check", case)
    assert refused.code == 2
    assert "FLUXLOOM_SILENCE='often'" in refused.err


def test_lines_go_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    with Listening(every=0.01):
        threading.Event().wait(0.2)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("working (0 s)\n")


def test_a_cold_start_names_what_is_compiled(
    case_file: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path / "cache"))
    told = Told()
    with Listening(told, every=0.05):
        model, application = load_case(case_file())
        runner = application.build(model, Context("cpu", threads=1))
        assert runner.flow.chain is not None
        runner.flow.chain.build()
    assert any("compiling: " in line and ", number " in line for line in told.lines), told.lines
    assert any(line.startswith("preparing loops: 5 of ") or "loops: " in line for line in told.lines), told.lines
