"""The tools that plant faults: mutants are texts of Python that differ by one place; reports are counted."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fluxloom_lab.attack.mutants import Result, summary
from fluxloom_lab.attack.planted import Mutation, applied, mutations, sample
from fluxloom_lab.attack.sanitizers import GROUPS, reports

ROOT = Path(__file__).resolve().parents[3]
TABLE = tomllib.loads((ROOT / "fluxloom_lab" / "attack" / "mutants.toml").read_text(encoding="utf-8"))
SOURCE = '''
"""µ: a docstring with 1 + 1."""
__all__ = ["f"]

def f(a: int | None, b: int = 2) -> int:
    """Return 3 < 4."""
    if a is None or not b:
        raise ValueError("a" + "b", 7)
    g(a, b)
    return a - b if a < b else f(b, a)
'''


def test_each_mutant_differs_in_one_place() -> None:
    """Docstrings, annotations and messages of errors stay; texts before a fault may have letters of two bytes."""
    found = mutations("m.py", SOURCE)
    kinds = {one.kind for one in found}
    assert kinds == {"comparison", "arithmetic", "constant", "statement", "not", "arguments", "branch"}
    for one in found:
        text = applied(SOURCE, one)
        compile(text, "m.py", "exec")
        assert text != SOURCE
        assert SOURCE.encode()[one.begin : one.end].decode() == one.before
    after = {(one.before, one.after) for one in found}
    assert ("a < b", "(a <= b)") in after
    assert ("a - b", "(a + b)") in after
    assert ("f(b, a)", "(f(a, b))") in after
    assert ("g(a, b)", "pass") in after
    assert ("not b", "(b)") in after
    assert ("a is None or not b", "True") in after
    assert {("2", "(3)")} == {pair for pair in after if pair[0].isdigit()}


def test_samples_grow() -> None:
    groups = [mutations(name, SOURCE) for name in ("one.py", "two.py")]
    few, more = sample(groups, 4, seed=1), sample(groups, 10, seed=1)
    assert more[:4] == few
    assert [one.file for one in few] == ["one.py", "two.py"] * 2
    assert len(sample(groups, 10**6, seed=1)) == sum(map(len, groups))


@pytest.mark.parametrize("file", TABLE["tests"])
def test_modules_and_their_tests_exist(file: str) -> None:
    assert mutations(file, (ROOT / file).read_text(encoding="utf-8"))
    for name in TABLE["tests"][file]:
        assert (ROOT / "tests" / name.partition("::")[0]).is_file()


@pytest.mark.parametrize("judged", TABLE["equivalent"], ids=lambda one: one["before"][:40])
def test_judged_mutants_exist(judged: dict[str, str]) -> None:
    """Where a module has changed, its mutants have to be judged again."""
    found = mutations(judged["file"], (ROOT / judged["file"]).read_text(encoding="utf-8"))
    assert (judged["file"], judged["before"], judged["after"]) in {one.key for one in found}


def test_equivalent_mutants_do_not_count() -> None:
    one = Mutation("m.py", "not", 1, 0, 1, "a", "b")
    found = summary([Result(one, status, 1.0, "") for status in ("killed",) * 3 + ("survived", "equivalent")])
    assert (found["mutants"], found["killed_percent"]) == (5, 75.0)


def test_reports_are_counted_without_their_addresses(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"log.{number}").write_text(
            f"=====\n=={number}==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x12{number} at pc 0x1\n"
            "    #0 0x7f in f /cache/graph-0123ab.c:3\n"
        )
    ((text, count),) = reports(tmp_path / "log").items()
    assert count == 2
    assert text.startswith("heap-buffer-overflow on address")
    assert text.endswith("at graph-0123ab.c:3")
    (tmp_path / "ub.1").write_text("/cache/a.c:4:47: runtime error: signed integer overflow: 5 + 1\n    #0 f a.c:4\n")
    assert sum(reports(tmp_path / "ub").values()) == 1
    assert not reports(tmp_path / "none")


def test_groups_exist() -> None:
    for selected, whole in GROUPS.values():
        assert all((ROOT / name).exists() for name in (*selected, *whole))
