"""The yardstick: its table is whole, a quick case runs as it is stored, and what changes is found."""

from __future__ import annotations

import json
import math
import shutil
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.yardstick.__main__ import RECORDS, load, main, store
from tests.yardstick.compare import changes, judge
from tests.yardstick.digests import difference, digest, relative
from tests.yardstick.results import numbers, read_results, timed
from tests.yardstick.table import ROOT, changed_text, read_table

CASES = {case.name: case for case in read_table()}
QUICK = "cavity_8"


# ------------------------------------------------------------------------------------------------- the table


def test_every_example_is_measured() -> None:
    """A new example needs a case, and a case needs a record."""
    examples = {f"examples/{path.name}" for path in (ROOT / "examples").iterdir() if path.suffix in (".toml", ".py")}
    missing = examples - {case.case or case.script for case in CASES.values()}
    assert not missing, f"no case in tests/yardstick/cases.toml for {', '.join(sorted(missing))}"
    records = {path.stem for path in RECORDS.glob("*.json")}
    assert records == set(CASES), f"records of other cases, or none: {', '.join(sorted(records ^ set(CASES)))}"


@pytest.mark.parametrize("name", CASES)
def test_record_is_of_its_case(name: str) -> None:
    """What a record was asked for is what the table says; it ended well and holds numbers that are finite."""
    case, record = CASES[name], load(RECORDS, name)
    assert record is not None
    asked = record["asked"]
    assert asked.get("iterations", 0) == case.iterations
    assert asked.get("change", {}) == json.loads(json.dumps(dict(case.change)))
    assert record["status"]["exit"] == 0
    assert record["fields"] or record["summary"]
    lost = {field: found["not_finite"] for field, found in record["fields"].items() if "not_finite" in found}
    assert not lost


def test_keys_are_changed() -> None:
    """Other values, new tables and lists of tables; what is taken away is gone."""
    text = '[a]\nx = 1\n[a.b]\ny = "t"\n[[c]]\nz = [1.5, true]\n'
    found = tomllib.loads(changed_text(text, {"a.b.y": -2.5e-8, "a.x": "none!", "d.e": [{"f": "q'\""}]}))
    assert found == {"a": {"b": {"y": -2.5e-8}}, "c": [{"z": [1.5, True]}], "d": {"e": [{"f": "q'\""}]}}


# ---------------------------------------------------------------------------------------------------- a case


def test_quick_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The stored numbers come back, within the tolerance on other machines; twice the same bits; a change is found."""
    assert main(["--only", QUICK, "--update", "--records", str(tmp_path)]) == 0
    assert "NEW" in capsys.readouterr().out
    record = load(tmp_path, QUICK)
    assert record is not None
    stored = judge(QUICK, record, load(RECORDS, QUICK), CASES[QUICK].tolerance, zero=CASES[QUICK].zero)
    assert stored.good, stored.text
    assert {"exit": 0, "iterations": 20}.items() <= record["status"].items()
    assert {"final.vtkhdf:u", "final.vtkhdf:p"} <= record["fields"].keys()

    changed = json.loads(json.dumps(record))
    changed["fields"]["final.vtkhdf:u"]["sha"] = "0" * 16
    changed["fields"]["final.vtkhdf:u"]["most"] *= 1 + 1e-7
    store(tmp_path, QUICK, changed)
    assert main(["--only", QUICK, "--records", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "DIFFERS" in told
    assert "final.vtkhdf:u by 1.0e-07" in told  # and nothing else: all other bits are those of the run before
    assert "more" not in told


def test_case_that_is_not_there() -> None:
    """The names that there are are told."""
    with pytest.raises(SystemExit, match=QUICK):
        main(["--only", "cavity_9"])


# ------------------------------------------------------------------------------------------- what is compared


def differ(new: np.ndarray, old: np.ndarray) -> float:
    return relative(*difference(digest(new), digest(old)))


@pytest.mark.parametrize("count", [1, 50, 4000])
@pytest.mark.parametrize("size", [1e-13, 1e-6, 1e-2])
def test_difference_is_estimated(count: int, size: float) -> None:
    """From two records, within a factor of a few, the root of the mean square of the difference."""
    random = np.random.default_rng(count)
    old = random.uniform(-3.0, 3.0, count)
    new = old + size * random.standard_normal(count)
    exact = math.sqrt(float(((new - old) ** 2).mean())) / float(np.abs(old).max())
    assert 0.2 * exact < differ(new, old) < 6.0 * exact
    assert differ(old.copy(), old) == 0.0


def test_difference_sees_places_types_and_gaps() -> None:
    """Two values that change places, another type, another shape, a value that is not finite."""
    old = np.linspace(0.0, 1.0, 100)
    moved = old.copy()
    moved[[20, 60]] = moved[[60, 20]]
    assert 0.01 < differ(moved, old) < 0.2
    assert 1e-9 < differ(old.astype("f4"), old) < 1e-7
    assert differ(-0.0 * old, 0.0 * old) == 0.0
    assert differ(old[:-1], old) == math.inf
    assert differ(np.where(old == 0.0, np.nan, old), old) == math.inf
    assert differ(old[:3], np.zeros(3)) == math.inf


def results(folder: Path, run: dict[str, Any], table: str) -> dict[str, Any]:
    """Return the record of made-up results."""
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    (folder / "history.csv").write_text(table, encoding="utf-8")
    record = read_results(folder)
    shutil.rmtree(folder)
    return record


RUN = {"status": "finished", "iterations": 3, "residual": 1e-3, "results": {"drag": "0.25 of 1,024", "rate": "7 MLUPS"}}
TABLE = "iteration,drag,seconds\n1,0.5,7.1\n2,0.25,9.2\n"


def test_rows_columns_and_words(tmp_path: Path) -> None:
    """Each change is told once, by its name; how long something took is none."""
    old = results(tmp_path / "a", RUN, TABLE)
    assert old["summary"] == {"drag": [0.25, 1024.0], "residual": [1e-3]}
    slower = RUN | {"results": {"drag": "0.25 of 1,024", "rate": "9 MLUPS"}}
    assert not changes(results(tmp_path / "b", slower, TABLE.replace("9.2", "8.8")), old)
    assert judge("a", old, old, 0.0).word == "same bits"

    ended = judge("a", results(tmp_path / "c", RUN | {"status": "end reached"}, TABLE), old, 1e-9)
    assert (ended.good, ended.word, ended.text) == (False, "renamed", "status: finished -> end reached")
    other = results(tmp_path / "d", RUN | {"results": {"cd": "0.25"}}, TABLE.replace("drag", "cd"))
    told = judge("a", other, old, 1e-9)
    assert (told.good, told.word) == (False, "renamed")
    assert "drag: is gone; cd: is new; history.csv:drag: is gone; and 1 more" in told.text
    assert judge("a", other, old, 1e-9, ["status", "files", "fields"]).good


def test_numbers_and_tolerance(tmp_path: Path) -> None:
    """A small change passes with a tolerance above it only; without one every bit counts."""
    old = results(tmp_path / "a", RUN, TABLE)
    new = results(tmp_path / "b", RUN, TABLE.replace("0.25", "0.250000001"))
    assert not judge("a", new, old, 0.0).good
    assert judge("a", new, old, 1e-8).word == "same to 1e-08"
    wrong = judge("a", new, old, 1e-10)
    assert (wrong.good, wrong.word) == (False, "DIFFERS")
    assert "history.csv:drag by" in wrong.text
    assert judge("a", new, old, 1e-10, zero=1e-8).good
    assert not judge("a", new, old, 0.0, zero=1e-8).good
    longer = judge("a", results(tmp_path / "c", RUN, TABLE + "3,0.2,10\n"), old, 1e-3)
    assert not longer.good
    assert "2 rows -> 3 rows" in longer.text


def test_gaps_in_a_table(tmp_path: Path) -> None:
    """A value that is not finite is no number: one more is a difference at any tolerance."""
    table = TABLE.replace("0.5", "nan")
    old = results(tmp_path / "a", RUN, table)
    assert judge("a", results(tmp_path / "b", RUN, table), old, 0.0).good
    assert judge("a", results(tmp_path / "c", RUN, table.replace("0.25", "0.2500001")), old, 1e-3).good
    for text in (TABLE, table.replace("0.25", "inf")):
        assert not judge("a", results(tmp_path / "d", RUN, text), old, 1e9).good


def test_numbers_in_texts() -> None:
    """Commas part thousands, signs and exponents count, names with digits do not."""
    assert numbers("-1.5e-03 of 1,024 m3 (Re 10), p2 3.5 %") == [-1.5e-3, 1024.0, 10.0, 3.5]
    assert timed("seconds")
    assert timed("rate", "3 MLUPS")
    assert not timed("time", "0.5 of 2")
