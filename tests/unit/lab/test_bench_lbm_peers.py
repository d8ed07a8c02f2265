"""Other libraries beside the benchmark ``lbm``: how they are found, started and read. No time is asserted."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from math import exp, pi
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fluxloom.core.errors import CaseError, DeviceUnavailable, FluxloomError
from fluxloom_lab.bench.boxes.lattice import LbmBench
from fluxloom_lab.bench.boxes.lbm_choice import Choice
from fluxloom_lab.bench.boxes.lbm_flow import VISCOSITY
from fluxloom_lab.peers import lbm_peers
from fluxloom_lab.peers.lbm_peers import PEERS, find_python, peer_rows, told
from tests.unit.lab.test_bench_lbm import little, silent

CASE: dict[str, Any] = {"shape": (8, 16, 4), "steps": 10}
SCRIPT = """
import json, os, sys
case = json.loads(sys.argv[1])
print("some words before")
row = {"way": "slow", "version": "fake 1", "threads": int(os.environ["OMP_NUM_THREADS"]), "seconds": [2.0, 1.0, 4.0],
       "kernel_seconds": None, "energies": [1.0, %s], "round_steps": case["steps"]}
print("fluxloom:", json.dumps(row))
print("fluxloom:", json.dumps({"way": "broken", "version": "fake 1", "threads": 1, "error": "no such thing"}))
"""


def said(viscosity: float, steps: int, n: int = 16) -> dict[str, Any]:
    """Return what a script says of a wave that decays with some viscosity in three rounds."""
    after = exp(-2.0 * viscosity * (2 * pi / n) ** 2 * 3 * steps)
    return {
        "way": "plain", "version": "fake 1", "threads": 2, "seconds": [2.0, 1.0, 4.0], "kernel_seconds": [1.0] * 3,
        "energies": [1.0, after], "round_steps": steps,
    }  # fmt: skip


def ours(error: float | None = 0.0) -> Any:
    """Return a measurement of our own, as far as it is looked at."""
    return SimpleNamespace(choice=Choice(), metrics={"mlups": 1e-6 * 512 * 10, "viscosity_error": error})


def test_a_row() -> None:
    (row,) = peer_rows("fake", [said(VISCOSITY, 10)], CASE, ours(), (20.0, 40.0))
    assert row["mlups"] == pytest.approx(1e-6 * 512 * 10 / 2.0)
    assert row["mlups_best"] == row["kernel_mlups"] == pytest.approx(1e-6 * 512 * 10)
    assert row["ours_over_peer"] == pytest.approx(2.0)
    assert row["percent_of_copy"] == pytest.approx(100 * row["mlups"] * 1e6 * 152 / 30e9)
    assert row["viscosity_error"] == pytest.approx(0.0, abs=1e-9)
    assert "error" not in row


def test_another_flow_is_told() -> None:
    (row,) = peer_rows("fake", [said(1.1 * VISCOSITY, 10)], CASE, ours(), (20.0, 40.0))
    assert row["error"] == "another flow: its viscosity is off by 10 %, ours by 0 %"
    (row,) = peer_rows("fake", [said(1.1 * VISCOSITY, 10)], CASE, ours(0.08), (20.0, 40.0))
    assert "error" not in row


def test_what_a_script_says() -> None:
    assert told("fake", ["words", 'fluxloom: {"way": "a"}', "more", 'fluxloom: {"way": "b"}']) == [
        {"way": "a"},
        {"way": "b"},
    ]
    with pytest.raises(FluxloomError, match="fake ended without a result; it said:\nwords"):
        told("fake", ["words"])


def test_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    numpy = replace(PEERS["lbmpy"], modules=("numpy",), variable="FLUXLOOM_NO_SUCH")
    assert find_python(numpy, sys.executable) == sys.executable
    missing = replace(numpy, modules=("numpy", "no_such_module"))
    with pytest.raises(DeviceUnavailable, match=r"numpy and no_such_module, not .*name its interpreter with --python"):
        find_python(missing, sys.executable)
    monkeypatch.setenv("FLUXLOOM_NO_SUCH", "/no/such/python")
    with pytest.raises(DeviceUnavailable, match="not /no/such/python: "):
        find_python(numpy)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"peers": "lbmpi"}, "--peers 'lbmpi'; did you mean 'lbmpy'?"),
        ({"peers": "xlb", "force": "uniform"}, "--peers compares one flow"),
        ({"peers": "xlb", "collision": "trt"}, "--peers compares one flow"),
        ({"peers": "xlb", "lattice": "d2q9,d3q19"}, "--peers compares one flow"),
        ({"peers": "xlb", "device": "reference"}, "not on reference"),
        ({"peers": "lbmpy", "precision": "float16"}, "--peers lbmpy has no storage in float16"),
        ({"python": "python3"}, "--python names the interpreter of one of --peers lbmpy,xlb"),
        ({"peers": "lbmpy,xlb", "python": "python3"}, "--python names the interpreter"),
    ],
)
def test_refused(named: dict[str, Any], message: str) -> None:
    with pytest.raises(CaseError) as caught:
        LbmBench().run(little(cells="4", **named), silent)
    assert message in str(caught.value)


def test_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A script is run once a backend with our case; a way that fails leaves the others."""
    script = tmp_path / "peer.py"
    after = exp(-2.0 * VISCOSITY * (2 * pi / 16) ** 2 * 3 * 40)
    script.write_text(SCRIPT % after, encoding="utf-8")
    fake = replace(PEERS["xlb"], name="fake", script=script, modules=("json",), backends=("one", "two"))
    monkeypatch.setattr(lbm_peers, "PEERS", {"fake": fake})
    lines: list[str] = []
    given = little(cells="16", iterations=40, peers="fake", python=sys.executable)
    record = LbmBench().run(given, lines.append).as_json()
    rows = json.loads(json.dumps(record["metrics"]["peers"]))
    assert [(row["peer"], row["way"]) for row in rows] == [("fake", "slow"), ("fake", "broken")] * 2
    assert rows[0]["threads"] == 1
    assert rows[0]["ours_over_peer"] == pytest.approx(record["metrics"]["mlups"] / rows[0]["mlups"])
    assert rows[0]["copy_before_gbs"] > 0
    assert rows[1]["error"] == "no such thing"
    assert any(line.startswith("fake slow (fake 1), 1 threads: ") for line in lines)


@pytest.mark.long
@pytest.mark.parametrize("name", list(PEERS))
def test_the_libraries_themselves(name: str) -> None:
    """Each steps the same flow: the wave decays as ours does."""
    if not os.environ.get(PEERS[name].variable):
        pytest.skip(f"no interpreter in {PEERS[name].variable}")
    record = LbmBench().run(little(cells="32", iterations=20, rounds=2, peers=name), silent)
    rows = record.metrics["peers"]
    assert len(rows) > 1
    assert [row.get("error") for row in rows] == [None] * len(rows)
