"""Averages of every solver by one monitor: those of its fields at the samples, weighted by the time between them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import load_case, parse_case
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.monitors.averages import Averages
from fluxloom.monitors.running_means import RunningMeans
from fluxloom.run.flow import Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.history import History
from fluxloom.run.results.results import ResultFolder
from fluxloom_lab.problems.small.state_cases import CASES, changed

SAMPLED = {
    "airfoil": ("density", "pressure"), "staggered": ("u", "v"), "edge_flow": ("u", "v", "p"),
    "edge_transport": ("scalar",), "incompressible closed": ("u", "v", "p"), "tsunami": ("depth", "elevation"),
    "compressible in time": ("rho", "u", "p"), "compressible local": ("rho", "u", "p"),
}  # fmt: skip


def built(name: str, changes: Mapping[str, object] | None = None, device: str = "cpu") -> FlowRun:
    """Return a case of a name at its start."""
    text, others, _ = CASES[name]
    tables = changed(tomllib.loads(text), others | {"statistics": {}} | dict(changes or {}))
    case, application = parse_case(Document(Path("case"), tables, {}))
    return application.build(case, Context(device, threads=1, tuning=False) if device == "cpu" else Context(device))


@pytest.mark.parametrize("name", SAMPLED)
def test_means_of_fields(name: str, tmp_path: Path) -> None:
    """From a start on, every second step and the last one; profiles are means of these."""
    table = {"every": 2, "start": 1e-9, "profile": "x", "bins": 2}
    run = built(name, {f"statistics.{key}": value for key, value in table.items()})
    flow, found, weights, before = run.flow, [], [], run.flow.time or 0.0
    run.begin(ResultFolder(tmp_path))
    for step in range(1, 6):
        run.advance()
        if step in (2, 4, 5):
            fields = flow.fields()
            found.append([fields[field].copy() for field in SAMPLED[name]])
            weights.append(1.0 if flow.time is None else flow.time - before)
            before = flow.time or 0.0
        if step == 1:
            assert not any(field.endswith("_mean") for field in run.fields())
            assert np.isnan(run.fields().chosen([f"{SAMPLED[name][0]}_mean"])[f"{SAMPLED[name][0]}_mean"]).all()
    run.finish(pictures=False)
    values, share = np.array(found), np.array(weights) / sum(weights)
    mean = np.einsum("s,sfn->fn", share, values)
    variance = np.einsum("s,sfn->fn", share, (values - mean) ** 2)
    fields = run.fields()
    for k, field in enumerate(SAMPLED[name]):
        size = np.abs(values[:, k]).max()
        np.testing.assert_allclose(fields[f"{field}_mean"], mean[k], rtol=1e-9, atol=1e-12 * size, err_msg=field)
        if name != "staggered":  # whose squares are those at faces
            np.testing.assert_allclose(fields[f"{field}_rms"] ** 2, variance[k], rtol=1e-7, atol=1e-12 * size**2)
    table = np.genfromtxt(tmp_path / "profile.csv", delimiter=",", names=True)
    assert len(table) == 2
    averages = next(one for one in run.monitors if isinstance(one, Averages))
    places, sizes = averages.means.averaged.places(), averages.means.averaged.sizes()
    left = places[:, 0] < 0.5 * (places[:, 0].min() + places[:, 0].max())
    lower = np.average(mean[0][left], weights=sizes[left])
    assert table[SAMPLED[name][0]][0] == pytest.approx(lower, rel=1e-7, abs=1e-9 * np.abs(mean[0]).max())
    assert dict(run.summary())["averages"].startswith("3 samples")


@pytest.mark.parametrize("name", ["airfoil", "tsunami"])
def test_what_is_averaged_is_that_of_the_reference(name: str) -> None:
    """Of flows that fill what is averaged by a loop: a sample of the start."""
    found = []
    for device in ("cpu", "reference"):
        means = RunningMeans(built(name, device=device).flow.averaged())
        means.sample(2.0)
        found.append([means.velocity(), means.stress(), *(means.mean(value.name) for value in means.averaged.values)])
    for cpu, reference in zip(*found, strict=True):
        np.testing.assert_allclose(cpu, reference, rtol=1e-12, atol=1e-14)


def test_a_monitor_of_a_script(tmp_path: Path) -> None:
    """Made without a flow; what does not fit is heard when it is attached."""
    flow = built("edge_flow").flow
    assert isinstance(flow, fl.EdgeFlow)
    averages = Averages(profile="y", bins=2)
    with pytest.raises(SolverError, match="no run yet"):
        averages.profile()
    run = FlowRun(flow, "test", Until(), [averages, History(0)])
    run.begin(ResultFolder(tmp_path))
    for _ in range(2):
        run.advance()
    profile = averages.profile()
    assert (profile.axis, len(profile.coordinate)) == ("y", 2)
    assert set(profile.columns) == {"u", "v", "u_rms", "v_rms", "uv", "p", "p_rms"}
    with pytest.raises(SolverError, match="an axis of x, y is wanted, not 'z'"):
        FlowRun(flow, "test", Until(), [Averages(profile="z")])
    with pytest.raises(SolverError, match="every: a number of steps"):
        Averages(every=0)


def test_what_does_not_fit_a_case(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="statistics: profile: an axis of x, y is wanted"):
        built("edge_flow", {"statistics.every": 2, "statistics.profile": "z"})
    path = tmp_path / "case.toml"
    path.write_text(CASES["edge_flow"][0].replace("every = 2\nprofile", "profile"), encoding="utf-8")
    with pytest.raises(CaseError, match="profile is there but every is not"):
        load_case(path)
