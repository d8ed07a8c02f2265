"""Graphs with priorities."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from fluxloom.device.cuda import graph as cuda_graph
from fluxloom.device.cuda.graph import PrioritisedGraph, prioritised


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
