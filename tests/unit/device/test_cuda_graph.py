"""Graphs with priorities, and what runs instead of them where that is faster."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from fluxloom.device import cuda_graph
from fluxloom.device.cuda_graph import Contest, PrioritisedGraph, prioritised


class Event:
    """An event of a clock that stands still until somebody turns it."""

    def __init__(self, time: float) -> None:
        self.time, self.done = time, False


class Gpu:
    """A device whose graphs take ``graph`` and whose launches take ``alone`` milliseconds."""

    def __init__(self, graph: float, alone: float) -> None:
        self.now, self.runs, self.stream, self.made = 0.0, [], SimpleNamespace(ptr=7), []
        self.events: list[Any] = []
        self.cupy = SimpleNamespace(cuda=SimpleNamespace(get_elapsed_time=lambda a, b: b.time - a.time))
        whole = SimpleNamespace(launch=lambda _stream: self.run("graph", graph))
        device: Any = self
        self.contest = Contest(device, whole, lambda: self.run("alone", alone))

    def run(self, what: str, seconds: float) -> None:
        self.runs.append(what)
        self.now += seconds + (100.0 if len(self.runs) <= 2 else 0.0)  # cold at first

    def mark(self) -> Event:
        self.made.append(Event(self.now))
        return self.made[-1]

    def catch_up(self) -> None:
        for event in self.made:
            event.done = True


@pytest.mark.parametrize(("graph", "alone", "winner"), [(2.0, 3.0, "graph"), (3.0, 2.0, "alone"), (2.0, 2.0, "graph")])
def test_the_faster_way_wins(graph: float, alone: float, winner: str) -> None:
    gpu = Gpu(graph, alone)
    for _ in range(8):
        gpu.contest.launch(gpu.stream)
    assert gpu.runs == ["graph", "alone"] * 4
    for _ in range(3):  # nobody waits for the times
        gpu.contest.launch(gpu.stream)
    assert gpu.runs[8:] == ["graph"] * 3
    assert gpu.contest.best == -1
    gpu.catch_up()
    for _ in range(4):
        gpu.contest.launch(gpu.stream)
    assert gpu.runs[11:] == [winner] * 4
    assert len(gpu.events) == len(gpu.made) == 16


class Driver:
    """CUDA's driver as far as graphs go."""

    def __init__(self, status: int = 0) -> None:
        self.status, self.log = status, []

    def cuGraphInstantiateWithFlags(self, found: Any, graph: Any, flags: Any) -> int:  # noqa: N802
        found._obj.value = 1000 + graph.value
        self.log.append(("made", flags.value))
        return self.status

    def cuGraphLaunch(self, whole: Any, stream: Any) -> int:  # noqa: N802
        self.log.append(("launched", whole.value, stream.value))
        return self.status

    def cuGraphExecDestroy(self, whole: Any) -> int:  # noqa: N802
        self.log.append(("dropped", whole.value))
        return 0


def test_priorities_of_the_kernels_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    monkeypatch.setattr(cuda_graph, "_driver", lambda: driver)
    graph = prioritised(SimpleNamespace(graph=5))
    assert isinstance(graph, PrioritisedGraph)
    graph.launch(SimpleNamespace(ptr=7))
    del graph
    assert driver.log == [("made", 8), ("launched", 1005, 7), ("dropped", 1005)]


@pytest.mark.parametrize("reason", ["old", "none", "refuses"])
def test_a_driver_without_priorities(
    reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing() -> ctypes.CDLL:
        raise OSError("libcuda.so.1: cannot open shared object file")

    drivers = {"old": lambda: object(), "none": missing, "refuses": lambda: Driver(801)}
    monkeypatch.setattr(cuda_graph, "_driver", drivers[reason])
    graph = SimpleNamespace(graph=5)
    assert prioritised(graph) is graph
    assert "messages will not overtake the kernels beside them" in caplog.text
