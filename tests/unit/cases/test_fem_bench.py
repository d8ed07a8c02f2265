"""The benchmark of finite elements: its record, the ratios of the study, wrong options. No time is asserted."""

from __future__ import annotations

import pytest

from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.fe.cells.dofs import lagrange_dofs
from fluxloom.fe.global_matrix import GlobalMatrix
from fluxloom.fe.poisson import LocalMatrices
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.mesh.generate.boxes import box2d
from fluxloom.mesh.ranks.bind import bind
from fluxloom_lab.bench.linear.fem import FemBench, FemOptions
from fluxloom_lab.bench.registry import benches
from fluxloom_lab.studies.fem_traffic import PUBLISHED, accessed_bytes, modelled_ratio, traffic_rows


def test_ratios_of_the_study() -> None:
    """The words of the study give its table, to the digits that it has."""
    for (form, precision), published in PUBLISHED.items():
        for order, wanted in enumerate(published, start=1):
            assert modelled_ratio(order, form, 4 if precision == "float32" else 8) == pytest.approx(wanted, abs=0.006)


def test_bytes_are_those_of_the_arguments() -> None:
    """Accesses of loops, counted by hand: 2 x 2 quads of order 1 with 9 points and 49 entries."""
    data = box2d(2, 2)
    space = LagrangeSpace.of(bind(data, Context("reference")), lagrange_dofs(data, 1))
    x, y = space.context.dat(space.rows, name="x"), space.context.dat(space.rows, name="y")
    local = list(LocalMatrices(space).product(x, y))
    matrix = GlobalMatrix(space).matrix.product(x, y)
    assert accessed_bytes(local, 8) == 9 * 3 * 8 + 4 * (16 * 8 + 4 * 8 + 4 * 8 + 4 * 4)  # type: ignore[arg-type]
    assert accessed_bytes([matrix], 8) == 49 * (8 + 8 + 4) + 9 * 8 + 10 * 8
    assert accessed_bytes([matrix], 4) == 49 * (4 + 4 + 4) + 9 * 4 + 10 * 8
    rows = traffic_rows(1, {"local": local, "csr": [matrix]})  # type: ignore[dict-item]
    assert [(row["format"], row["precision"]) for row in rows] == [("csr", "float32"), ("csr", "float64")]
    assert rows[1]["counted"] == pytest.approx(1132 / 1048)
    assert rows[1]["counted_without_identity"] == pytest.approx(1132 / 832)


def test_record_of_one_format() -> None:
    """Without CSR there is nothing to compare with, and no ratio of bytes."""
    given = FemOptions(order="1", dofs="16", formats="local", precision="single", rounds=1, iterations=2, threads=1)
    record = benches()["fem"].run(given, lambda _: None).as_json()
    metrics = record["metrics"]
    assert (record["precision"], record["sizes"]) == ("float32", {"n": 16})
    assert (metrics["traffic"], metrics["speedups"]) == ([], [])
    assert metrics["formats"][0]["jacobi_iterations_per_second"] > 0.0
    assert metrics["formats"][0]["memory_mb"] == pytest.approx(1e-6 * 9 * (16 * 4 + 4 * 4))


@pytest.mark.long
def test_record() -> None:
    """There is a row for each format and order of integration, with what it is about; products agree."""
    told: list[str] = []
    given = FemOptions(order="1", dofs="30", formats="local,csr", rounds=1, iterations=2, threads=1)
    record = benches()["fem"].run(given, told.append).as_json()
    metrics = record["metrics"]
    assert (record["case"], record["precision"], record["sizes"]) == ("fem", "float64", {"n": 25})
    assert metrics["orders"] == [{"order": 1, "dofs": 25, "cells": 16}]
    local, csr = metrics["formats"]
    assert (local["format"], local["entries"], csr["format"], csr["entries"]) == ("local", None, "csr", 169)
    assert 0.0 <= csr["difference"] < 1e-13
    assert min(csr[f"{name}_iterations_per_second"] for name in ("jacobi", "ssor")) > 0.0
    assert "ssor_iterations_per_second" not in local
    assert [(row["format"], row["integration"], row["strategy"]) for row in metrics["assembly"]] == [
        ("local", "A", "direct"), ("csr", "A", "serial")
    ]  # fmt: skip
    assert record["seconds"] == pytest.approx(1e-3 * (local["product_ms"] + csr["product_ms"]))
    assert [row["over_csr"] for row in metrics["speedups"]] == ["local"]
    assert len(told) == 3
    assert len(record["loops"]) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": "1,5"}, r"--order '1,5'.* \(allowed: 1, 2, 3, 4\)"),
        ({"formats": "cst"}, "--formats 'cst'.*did you mean 'csr'"),
        ({"integration": "D"}, "--integration 'D'.*allowed: A, B, C"),
        ({"dofs": "many"}, "--dofs 'many': give a number"),
        ({"precision": "half"}, "--precision 'half'.*allowed: double, float64, single, float32"),
        ({"device": "reference"}, "nothing to time"),
    ],
)
def test_wrong_options(options: dict[str, str], words: str) -> None:
    """Messages name the option and what it allows."""
    with pytest.raises(CaseError, match=words):
        FemBench().run(FemOptions(**options), print)  # type: ignore[arg-type]
