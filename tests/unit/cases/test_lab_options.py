"""Options of benchmarks and verifications: each declares its own, and the command line is made from them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fluxloom.cli.main import main
from fluxloom.comm.base import SelfComm
from fluxloom.core.errors import CaseError
from fluxloom.core.registry import Registry
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom_lab.bench.base import Record
from fluxloom_lab.bench.options import BenchOptions, Scheduled, cells_option
from fluxloom_lab.bench.registry import benches
from fluxloom_lab.options import given, option, options_of
from fluxloom_lab.verify.registry import verifications

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Collect what command lines would run: a name, and its options."""
    seen: list[tuple[str, Any]] = []

    def run(name: str, subject: Any, options: Any, *_: Any) -> int:
        seen.append((name, options))
        return 0

    for verb in ("bench", "verify"):
        monkeypatch.setattr(f"fluxloom_lab.cli.{verb}._run", run)
    return seen


# ------------------------------------------------------------------------------------------ old command lines


def commands(value: Any) -> Iterator[str]:
    """Yield the command lines in a record."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "command" and isinstance(item, str):
                yield item
            else:
                yield from commands(item)
    elif isinstance(value, list):
        for item in value:
            yield from commands(item)


def recorded() -> Iterator[list[str]]:
    """Yield the words of the command lines of all records, and of those that pages show."""
    lines = []
    for path in sorted((ROOT / "bench" / "results").rglob("*.json")):
        lines += list(commands(json.loads(path.read_text(encoding="utf-8"))))
    for path in (ROOT / "README.md", ROOT / "bench" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        lines += re.findall(r"^(?:mpiexec -n \d+ )?(fluxloom (?:bench|verify) .*)$", text, re.MULTILINE)
    for line in lines:
        words = shlex.split(line, comments=True)
        if words[0].endswith("fluxloom") and words[1:2] in (["bench"], ["verify"]):
            yield words[1:]


def test_command_lines_that_are_recorded_or_shown_are_understood(
    started: list[tuple[str, Any]], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record can be made again with its ``command``."""
    monkeypatch.chdir(tmp_path)
    wanted = []
    for words in recorded():
        if "DIR" in words or words[1] == "list":
            continue
        assert main(words) == 0, (words, capsys.readouterr().err)
        wanted.append(words[1])
    assert len(wanted) > 150
    assert [name for name, _ in started] == wanted


def test_options_may_stand_before_the_name(started: list[tuple[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--cells", "8", "--device", "opencl", "lbm", "--walls"]) == 0
    assert main(["verify", "--full", "cavity"]) == 0
    (lbm, options), (cavity, checked) = started
    assert (lbm, options.cells, options.device, options.walls) == ("lbm", "8", "opencl", True)
    assert (cavity, checked.full, checked.device) == ("cavity", True, "cpu")
    assert main(["bench", "--cells", "8"]) == 2
    assert "name a benchmark before its options" in capsys.readouterr().err


# ---------------------------------------------------------------------------------- each has its own, and no other


@pytest.mark.parametrize("verb", ["bench", "verify"])
def test_help_shows_the_options_of_a_name(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them, and what all have."""
    known: Registry[Any] = benches() if verb == "bench" else verifications()
    assert len(known.names()) > 15
    for name in known.names():
        assert main([verb, name, "--help"]) == 0
        told = capsys.readouterr().out
        shown = set(re.findall(r"(?<=[\s,/])--[a-z][a-z-]*", told.split("Options:")[1]))
        declared = {"--json", "--help"}
        for key, one in options_of(known[name].options):
            words = one.words or (f"--{key.replace('_', '-')}",)
            declared |= {word for text in words for word in re.split("[ /]+", text)}
        assert shown <= declared, name
        assert {word for word in declared if word.startswith("--")} <= shown | {"--unfused", "--no-fused"}, name
        assert {"--device", "--threads"} <= shown


def test_no_name_has_many() -> None:
    """A command had 53 options; what one name has can be read at a glance."""
    for known in (benches(), verifications()):
        for name in known.names():
            assert len(list(options_of(known[name].options))) <= 22, name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bench", "spmv", "--layout", "soa"), "the benchmark spmv has no option --layout"),
        (("bench", "lbm", "--latice", "d2q9"), "--latice; did you mean '--lattice'? (fluxloom bench lbm --help"),
        (("verify", "lbm-exact", "--full"), "the verification lbm-exact has no option --full"),
        (("verify", "cavity", "--rank", "cpu:1"), "the verification cavity has no option --rank"),
        (("bench", "airfoil", "--partition", "kwey"), "--partition 'kwey'; did you mean 'kway'?"),
        (("bench", "airfoil", "--ranks", "cpu:1*2", "--device", "cpu"), "--device and --ranks both say what to run on"),
        (("bench", "airfoil", "--shares", "1,x"), "shares"),
        (("bench", "airfol"), "unknown benchmark 'airfol'; did you mean 'airfoil'?"),
    ],
)
def test_wrong_words(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong is said in one line, with what may have been meant."""
    assert main(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


# ------------------------------------------------------------------------------------------ from a dataclass


@dataclass(frozen=True)
class WaveOptions(Scheduled):
    """Options of a benchmark of somebody else."""

    cells: str = cells_option("Cells a side.", "N")
    least_speed: float = option(0.5, metavar="V", help="Slowest wave.", made=lambda value: abs(value))
    slow: bool = option(False, help="Slow waves too.")
    hidden: int = 3


class Waves:
    """Waves of somebody else."""

    title = "Waves"
    options = WaveOptions

    def run(self, options: WaveOptions, tell: Any) -> Record:
        """Measure nothing."""
        words = (options.cells, options.least_speed, options.slow, options.schedule.strategy, options.hidden)
        raise CaseError(" ".join(map(str, words)))


def test_benchmark_of_somebody_else(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Fields that `option` made are options; the others are none."""
    registry: Registry[Any] = Registry("benchmark", error=CaseError)
    registry.register("waves", Waves())
    monkeypatch.setattr("fluxloom_lab.cli.bench.benches", lambda: registry)
    assert main(["bench", "waves", "--cells", "4", "--least-speed", "-2", "--slow", "--strategy", "gather"]) == 2
    assert "error: 4 2.0 True gather 3" in capsys.readouterr().err
    assert main(["bench", "waves", "--hidden", "4"]) == 2
    assert "has no option --hidden" in capsys.readouterr().err


def test_fields_from_options() -> None:
    """A field may be made from several options, and has its own default where nothing is given."""
    values = {key: one.default for key, one in options_of(WaveOptions)}
    comm = SelfComm()
    assert given(WaveOptions, values, comm=comm) == WaveOptions(comm=comm)
    values |= {"schedule": "two_pass, lanes=4", "schedule_2": 64, "device": "opencl"}
    made = given(WaveOptions, values, hidden=1)
    assert made.schedule == Schedule(strategy="two_pass", block=64, lanes=4)
    assert (made.device, made.hidden) == ("opencl", 1)
    assert [key for key, _ in options_of(BenchOptions)] == ["device", "threads"]
