"""What tests of cases of flow share: the channel, and how cases are written, built and run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from fluxloom.cases.files.loading import load_case
from fluxloom.comm.base import Comm
from fluxloom.dsl.context import Context
from fluxloom.run.flow import Flow
from fluxloom.run.flow_run import FlowRun

XMIN = '[boundary.xmin]\ntype = "inflow"\nvelocity_x = "4 * y * (1 - y)"\n'
XMAX = '[boundary.xmax]\ntype = "outflow"\n'
YMIN = '[boundary.ymin]\ntype = "wall"\n'
YMAX = '[boundary.ymax]\ntype = "wall"\n'
INITIAL = '[initial]\nvelocity_x = "4 * y * (1 - y)"\n'
CHANNEL = f"""
[fluid]
viscosity = 0.1

{INITIAL}
{XMIN}{XMAX}{YMIN}{YMAX}"""
"""Poiseuille's flow between planes of the box that a case names."""

Change = tuple[str, str]
Write = Callable[..., Path]


class _Advances(Protocol):
    def advance(self) -> None: ...


R = TypeVar("R", bound=Flow)
A = TypeVar("A", bound=_Advances)


def writer(case: str, path: Path) -> Write:
    """Return a function that writes a case with some texts replaced, each once; ``name``: beside the path."""

    def write_case(*changes: Change, name: str = path.name) -> Path:
        text = case
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        written = path.with_name(name)
        written.write_text(text, encoding="utf-8")
        return written

    return write_case


def built(kind: type[R], path: Path, device: str = "cpu", comm: Comm | None = None) -> FlowRun[R]:
    """Return the run of a case, whose flow is of a kind."""
    case, application = load_case(path)
    runner = application.build(case, Context(device, threads=1, tuning=False, comm=comm))
    assert isinstance(runner.flow, kind)
    return runner


def advanced(runner: A, steps: int) -> A:
    """Return a runner after some steps."""
    for _ in range(steps):
        runner.advance()
    return runner
