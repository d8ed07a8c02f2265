"""Benchmarks and the verification of Poisson solvers and of lines: records, peers, wrong options. No time is asserted.

The sizes are tiny, the memory is known, and what the benchmarks time is not looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError
from fluxloom.device.bandwidth import Bandwidth
from fluxloom.dsl.context import Context
from fluxloom.linalg.direct.poisson import Plan
from fluxloom_lab.bench.linear import poisson, separable, tridiagonal
from fluxloom_lab.bench.linear.poisson import PoissonOptions
from fluxloom_lab.bench.linear.poisson_ranks import DIVISIONS
from fluxloom_lab.bench.registry import benches
from fluxloom_lab.peers.poisson_peers import usual_solver
from fluxloom_lab.peers.separable_peers import factors
from fluxloom_lab.peers.tridiagonal_peers import usual_library
from fluxloom_lab.verify import poisson as verify_poisson
from fluxloom_lab.verify.base import FullOptions
from fluxloom_lab.verify.poisson import PAIRS, PoissonVerification, off
from fluxloom_lab.verify.poisson_lines import ROWS, ROWS_FULL, _cases
from fluxloom_lab.verify.registry import verifications


class Memory:
    """A memory of 10 GB/s."""

    def measure(self, repeats: int = 5) -> Bandwidth:
        return Bandwidth(10.0, 10.0, 10.0, 1, 1, 10.0, 10.0)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (poisson, separable, tridiagonal):
        monkeypatch.setattr(module, "meter_for", lambda *_: Memory())


def record_of(name: str, **options: Any) -> dict[str, Any]:
    """Return the record of a run of moments, and see that each case is told."""
    told: list[str] = []
    found = benches()[name].run(benches()[name].options(threads=1, rounds=1, **options), told.append).as_json()
    assert told
    assert (found["case"], found["copy_gbs"], found["loops"]) == (name, 10.0, [])
    assert found["seconds"] > 0
    return found


def test_lines() -> None:
    """A row for each layout, size and method, with the residual; SciPy beside them; those that refuse are left out."""
    record = record_of("tridiagonal", cells="3x40,16x20", methods="auto, thomas,partition", model="contiguous")
    rows = record["metrics"]["cases"]
    scipy = rows[2]["method"]
    assert scipy.startswith("scipy")
    wanted = [(n, systems, method) for n, systems in ((3, 40), (16, 20)) for method in ("auto", "thomas", scipy)]
    assert [(row["rows"], row["systems"], row["method"]) for row in rows] == wanted
    assert {row["layout"] for row in rows} == {"contiguous"}
    assert all(row["residual"] < 1e-15 for row in rows if row["method"] != scipy)
    assert rows[0]["chosen"] in ("thomas", "cr", "pcr", "cr_pcr")
    assert rows[1]["gbs"] == pytest.approx(1e-9 * 9 * 120 * 8 / rows[1]["seconds"])
    assert rows[1]["percent_of_copy"] == pytest.approx(10 * rows[1]["gbs"])
    assert record["sizes"] == {"n": 3 * 40 + 16 * 20}
    assert record["seconds"] == pytest.approx(rows[0]["seconds"] + rows[3]["seconds"])


def test_peer_of_lines() -> None:
    """SciPy gets the bands of the systems; of many it solves a share."""
    rng = np.random.default_rng(0)
    values = [rng.random((8, 5)) + k for k in (0, 3, 0, 0)]
    peer = usual_library(Context("cpu", threads=1), values, "interleaved")
    assert peer is not None
    assert peer.share == 1.0
    peer.run()
    wide = [np.broadcast_to(v, (8, 1 << 17)) for v in np.ones((4, 8, 1))]
    some = usual_library(Context("cpu", threads=1), wide, "interleaved")
    assert some is not None
    assert some.share == 0.25
    assert usual_library(Context("reference"), values, "interleaved") is None


def test_box() -> None:
    """Every model: the solution is that of SciPy's transforms, and the parts of a solve have times."""
    record = record_of("poisson", cells="6,8", model=",".join(poisson.MODELS))
    metrics = record["metrics"]
    assert (record["model"], record["sizes"], record["ranks"]) == (",".join(poisson.MODELS), {"cells": 48}, 1)
    assert metrics["shape"] == [8, 6]  # the last axis is x
    for name in poisson.MODELS:
        row = metrics[name]
        assert row["off_peer"] < 1e-13
        assert row["peer"].startswith("scipy")
        assert row["times_faster_than_peer"] == pytest.approx(row["peer_seconds"] / row["seconds_per_solve"])
        assert row["gbs"] == pytest.approx(2e-9 * 48 * 8 / row["seconds_per_solve"])
        assert row["percent_of_copy"] == pytest.approx(10 * row["gbs"])
        assert sum(row["parts_ms"].values()) > 0
    assert "tridiagonal systems" in metrics["channel"]["plan"]
    assert record["seconds"] == metrics["channel"]["seconds_per_solve"]


def test_box_in_single_precision() -> None:
    record = record_of("poisson", cells="6,4,8", precision="float32")
    assert (record["precision"], record["sizes"]) == ("float32", {"cells": 192})
    assert 1e-9 < record["metrics"]["channel"]["off_peer"] < 1e-5


def test_box_on_ranks() -> None:
    """A case for each way to divide the box, with what is sent; no library beside it."""

    def work(comm: Comm) -> dict[str, Any]:
        given = PoissonOptions(comm=comm, threads=1, rounds=1, cells="8,6,4")
        return benches()["poisson"].run(given, lambda _: None).as_json()

    record, other = run_threads(2, work)
    assert (record["ranks"], record["model"], record["copy_gbs"]) == (2, "channel slabs,channel pencils", 20.0)
    slabs, pencils = (record["metrics"][f"channel {name}"] for name in DIVISIONS)
    for row in (slabs, pencils):
        assert row["gbs"] == pytest.approx(2e-9 * 192 * 8 / row["seconds_per_solve"])
        assert row["percent_of_copy"] == pytest.approx(5 * row["gbs"])
        assert sum(row["parts_ms"].values()) > 0
        assert "peer" not in row
    assert ": slabs" in slabs["plan"]
    assert ": pencils" in pencils["plan"]
    assert min(slabs["bytes_sent"], pencils["bytes_sent"]) > 0
    assert other["seconds"] == record["seconds"]

    with pytest.raises(CaseError, match=r"--methods 'slab'.*did you mean 'slabs'"):
        run_threads(2, lambda comm: benches()["poisson"].run(PoissonOptions(comm=comm, methods="slab"), print))


def test_peer_of_boxes() -> None:
    """SciPy's solver finds what the dense matrix does."""
    f = poisson.right_hand_side((4, 5), "float64")
    assert abs(f.mean()) < 1e-15
    sides = ("neumann", "periodic")
    peer = usual_solver(Context("cpu", threads=1), sides, "cell", f, 0.25)
    assert peer is not None
    peer.run()
    matrix = Plan((4, 5), 0.25, sides, threads=1).matrix()
    assert np.abs(matrix @ peer.solution().ravel() - f.ravel()).max() < 1e-12
    assert abs(peer.solution().mean()) < 1e-15


def test_planes() -> None:
    """Both forms with their errors and levels, and SciPy's factors beside them."""
    record = record_of("separable", cells="7,12")
    rows, peers = record["metrics"]["plane"], record["metrics"]["peer"]
    assert [(row["n"], row["form"]) for row in rows] == [
        (7, "partial_fractions"), (7, "product"), (12, "partial_fractions"), (12, "product")
    ]  # fmt: skip
    for row in rows:
        assert row["mapping"] == "vectors"
        assert row["forward"] < 1e-12
        assert row["backward_eps"] < 100
        assert row["solves"] > 0
        assert {"phase", "level", "kernel", "systems", "microseconds"} <= set(row["levels"][0])
    assert [peer["n"] for peer in peers] == [7, 12]
    assert record["sizes"] == {"cells": 144}
    assert record["seconds"] == min(row["seconds"] for row in rows[2:])
    assert not {"split", "box"} & set(record["metrics"])


def test_peer_of_planes() -> None:
    """SuperLU finds the solution that the problem is made of; errors of something else are seen."""
    given = separable.manufactured(6, 9)
    assert given.exact.shape == (6, 9)
    found = factors(given, lambda _: None)
    assert found["name"].startswith("scipy")
    assert found["forward"] < 1e-13
    forward, backward = given.errors(given.exact + 1.0)
    assert forward == pytest.approx(1.0)
    assert backward > 1e9


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("tridiagonal", {"cells": "512"}, "--cells '512': rows and systems are wanted, as 512x131072"),
        ("tridiagonal", {"cells": "0x4"}, "--cells '0x4'"),
        ("tridiagonal", {"precision": "half"}, r"--precision 'half' \(allowed: float64, float32\)"),
        ("tridiagonal", {"methods": "tomas"}, r"--methods 'tomas' \(allowed: auto, thomas,"),
        ("tridiagonal", {"model": "planes"}, r"--model 'planes' \(allowed: interleaved, contiguous\)"),
        ("tridiagonal", {"device": "reference"}, "nothing to time"),
        ("poisson", {"model": "chanel"}, "--model 'chanel'.*did you mean 'channel'"),
        ("poisson", {"methods": "slabs"}, "--methods says how a box is divided among ranks"),
        ("poisson", {"precision": "half"}, "--precision 'half'"),
        ("poisson", {"cells": "many"}, "--cells 'many'"),
        ("poisson", {"device": "reference"}, "nothing to time"),
        ("separable", {"cells": "511x2"}, "--cells '511x2': sides of squares are wanted, as 511 or 511,1024"),
        ("separable", {"model": "cube"}, r"--model 'cube' \(allowed: plane, box\)"),
        ("separable", {"device": "reference"}, "nothing to time"),
    ],
)
def test_wrong_options(name: str, options: dict[str, str], words: str) -> None:
    """One message names the option and what it allows."""
    given = {"cells": "4x4" if name == "tridiagonal" else "4", "threads": 1, **options}
    with pytest.raises(CaseError, match=words):
        benches()[name].run(benches()[name].options(**given), print)


# ------------------------------------------------------------------------------------------------ verification
def test_errors_are_in_units_of_round_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solve is within some units; a solver whose every value is off in the ninth digit is not."""
    context = Context("cpu", threads=1)
    for pair in PAIRS:
        assert off(context, (5,), (pair,), "cell", "float64") < 64
    assert 0 < off(context, (7, 5), (("dirichlet", "neumann"), ("periodic", "periodic")), "node", "float32") < 64

    class Worse(Plan):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return super().__call__(*arguments, **options) * (1 + 1e-9)

    monkeypatch.setattr(verify_poisson, "Plan", Worse)
    assert off(context, (5,), (PAIRS[1],), "cell", "float64") > 64


def test_sizes_of_lines() -> None:
    """Open and periodic systems have every size, each in the layout that the others have not; a full run has all."""
    one, other = (_cases(False, periodic) for periodic in (False, True))
    assert [rows for rows, _ in one] == [rows for rows, _ in other] == list(ROWS)
    assert all(first != second for (_, first), (_, second) in zip(one, other, strict=True))
    assert {interleaved for _, interleaved in one} == {True, False}
    assert len(_cases(True, False)) == 2 * len(ROWS_FULL)
    assert set(ROWS) < set(ROWS_FULL)


def test_device_that_interprets_is_refused() -> None:
    assert isinstance(verifications()["poisson"], PoissonVerification)
    with pytest.raises(CaseError, match="runs no generated code"):
        list(PoissonVerification().run(FullOptions(device="reference"), print))


@pytest.mark.long
def test_verification() -> None:
    """Every check passes; each has a name of its own."""
    checks = list(verifications()["poisson"].run(FullOptions(threads=1), lambda _line: None))
    assert len(checks) >= 70
    assert len({check.name for check in checks}) == len(checks)
    assert all(check.ok for check in checks)
