"""The benchmark ``lbm``: what it measures, its tables, and what it refuses. No time is asserted."""

from __future__ import annotations

from math import exp, pi
from typing import Any

import pytest

from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.lbm.lattices import D2Q9, D3Q19
from fluxloom_lab.bench.base import Record
from fluxloom_lab.bench.boxes import lattice as lbm
from fluxloom_lab.bench.boxes.lattice import LbmBench
from fluxloom_lab.bench.boxes.lbm_choice import Choice, LbmOptions, choices_of, ideal_mlups, thesis_mlups
from fluxloom_lab.bench.boxes.lbm_flow import VISCOSITY, viscosity_error


def little(**named: Any) -> Any:
    """Return options for little work."""
    usual: dict[str, Any] = {"threads": 1, "iterations": 2, "rounds": 1}
    return LbmOptions(**usual | named)


def silent(_: str) -> None:
    """Say nothing."""


# --------------------------------------------------------------------------------------------- choices


def test_one_choice_by_default() -> None:
    assert choices_of(little()) == [Choice()]
    assert Choice().title == "D3Q19 BGK pull"
    named = little(
        lattice="d2q9", collision="TRT", precision="float64", streaming="in-place", force="uniform", walls=True
    )
    (choice,) = choices_of(named)
    assert (choice.velocities, choice.collision, choice.streaming) == (D2Q9, "trt", "in-place")
    assert choice.title == "D2Q9 TRT in-place uniform force cavity"
    assert not choice.plain
    assert choice.row()["walls"] is True
    assert "walls" not in Choice().row()


def test_all_combinations() -> None:
    assert len(choices_of(little(lattice="d2q9,d3q19,d2q9", precision="float64, float32"))) == 4
    every = choices_of(little(full=True))
    assert len(every) == len(set(every)) == 3 * 3 * 4 * 3
    assert {choice.collision for choice in every} == {"bgk"}
    narrowed = choices_of(little(full=True, lattice="D3Q19", layout="soa", precision="float32"))
    assert [choice.streaming for choice in narrowed] == ["pull", "push", "three-phase", "in-place"]


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"lattice": "d3q18"}, "--lattice 'd3q18'; did you mean 'd3q19'?"),
        ({"collision": "bgkk"}, "--collision 'bgkk'; did you mean 'bgk'?"),
        ({"streaming": "aa"}, "--streaming 'aa'"),
        ({"precision": "float23"}, "--precision 'float23'; did you mean"),
        ({"force": "gravity"}, "--force 'gravity'"),
        ({"layout": "sao"}, "--layout 'sao'; did you mean 'soa'?"),
    ],
)
def test_unknown_names(named: dict[str, Any], message: str) -> None:
    with pytest.raises(CaseError) as caught:
        choices_of(little(**named))
    assert message in str(caught.value)


def test_estimates() -> None:
    """The thesis has 481 MLUPS for 208 GB/s and 667 for 288; a scheme of two buffers moves a third of that."""
    assert thesis_mlups(208.0, D2Q9) == pytest.approx(481.5, abs=0.1)
    assert thesis_mlups(288.0, D2Q9) == pytest.approx(666.7, abs=0.1)
    assert ideal_mlups(288.0, Choice("D2Q9", precision="float64")) == pytest.approx(2000.0)
    assert Choice(precision="float16").bytes_per_cell == 2 * 2 * D3Q19.q


def test_viscosity_from_decay() -> None:
    assert viscosity_error((1, 4, 4), (1.0, 0.0), 1) is None
    after = exp(-2.0 * 1.1 * VISCOSITY * (2 * pi / 64) ** 2 * 30)
    assert viscosity_error((8, 64, 8), (1.0, after), 30) == pytest.approx(0.1)


# ---------------------------------------------------------------------------------------------- shapes


def test_boxes_of_planes_and_cubes() -> None:
    context = little(device="reference").context()
    assert lbm._shape(context, Choice("D2Q9"), "6,4") == (4, 6)
    assert lbm._shape(context, Choice("D2Q9"), "6") == (6, 6)
    assert lbm._shape(context, Choice("D2Q9"), "") == (16, 16)
    assert lbm._shape(context, Choice(), "6,4,2") == (2, 4, 6)
    with pytest.raises(CaseError, match="of a plane"):
        lbm._shape(context, Choice("D2Q9"), "6,4,2")


# ---------------------------------------------------------------------------------------------- records


def test_a_record() -> None:
    record = LbmBench().run(little(cells="16", iterations=40), silent).as_json()
    metrics = record["metrics"]
    assert (record["case"], record["model"], record["sizes"]) == ("lbm", "D3Q19 BGK pull", {"cells": 4096})
    assert (metrics["bytes_per_cell"], metrics["moved_bytes_per_cell"]) == (152, 152)
    assert metrics["shape"] == [16, 16, 16]
    assert metrics["percent_of_copy"] == pytest.approx(100 * metrics["mlups"] / metrics["ideal_mlups"])
    assert sum(metrics["kernels_ms"].values()) <= 1.01 * metrics["ms_per_step"]
    assert abs(metrics["viscosity_error"]) < 0.05
    assert "sweep" not in metrics


def test_a_table_of_several() -> None:
    given = little(device="reference", cells="4", iterations=1, lattice="d3q19,d2q9", precision="float64")
    record = LbmBench().run(given, silent)
    assert [(row["lattice"], row["cells"]) for row in record.metrics["sweep"]] == [("D3Q19", 64), ("D2Q9", 16)]
    assert all(row["ideal_mlups"] is None and row["mlups"] > 0 for row in record.metrics["sweep"])
    assert (record.copy_gbs, record.precision, record.sizes) == (0.0, "float64", {"cells": 64})


def test_what_is_refused_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    real = lbm.measure

    def measure(context: Any, choice: Choice, *rest: Any) -> Any:
        if choice.lattice == "D3Q19":
            raise SolverError("not this one\nand more")
        return real(context, choice, *rest)

    monkeypatch.setattr(lbm, "measure", measure)
    told: list[str] = []
    given: dict[str, Any] = {"device": "reference", "cells": "4", "iterations": 1, "precision": "float64"}
    record = LbmBench().run(little(lattice="d3q19,d2q9", **given), told.append)
    assert [row.get("error") for row in record.metrics["sweep"]] == ["not this one", None]
    assert record.model == "D2Q9 BGK pull"
    assert "D3Q19 BGK pull: not this one" in told
    with pytest.raises(SolverError, match="not this one"):
        LbmBench().run(little(lattice="d3q19", **given), silent)
    with pytest.raises(CaseError, match="none of 2 flows could be measured: not this one"):
        LbmBench().run(little(lattice="d3q19", force="none,uniform", **given), silent)


def test_ranks_share_the_box() -> None:
    """Two ranks do the steps of one: the viscosity says so; each sends 5 of 19 populations of two planes of 6 x 4."""

    def rank(comm: Comm) -> Record:
        return LbmBench().run(little(cells="8,6,4", comm=comm, device="cpu"), silent)

    one, (two, other) = rank(SelfComm()), run_threads(2, rank)
    assert (one.ranks, two.ranks) == (1, 2)
    assert two.metrics["viscosity_error"] == pytest.approx(one.metrics["viscosity_error"], abs=1e-5)
    assert two.metrics["moved_bytes_per_cell"] == one.metrics["moved_bytes_per_cell"]
    found = two.metrics["exchanges"]
    assert (found["exchanges"], found["halo_bytes"]) == (2, 2 * 2 * 2 * 24 * 5 * 4)
    assert other.metrics["exchanges"] == found
    with pytest.raises(CaseError, match="one rank"):
        run_threads(2, lambda comm: LbmBench().run(little(comm=comm, device="cpu", threads_sweep=True), silent))
