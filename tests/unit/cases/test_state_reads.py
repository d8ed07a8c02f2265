"""All that the next step reads is part of the state: seen from the calls of real steps, in the order they have.

`fluxloom.dsl.checkpoint.memory.Memory` takes chains and loops one by one, whatever their order. Here every loop and
every chain that steps run is heard, with what the host looks at and sets between them; what they take from before, and
a step before has changed, has to be in the state. What classes name as ``forgets`` is left out: access modes do not
show that all of it is overwritten first. That it is, `tests.unit.cases.test_state` shows for the same cases: it makes
it unusable before a restart.

Covered, a case each (`tests.state_cases.CASES`), with histories, forces, probes and averages:

- Airfoil; transport on edges, bounded and not;
- flow on edges: open and closed, each preconditioner, conjugate gradients and BiCGStab, subscales static and tracked,
  eddy viscosities, a wall law, towards a steady flow;
- incompressible flow: Adams-Bashforth and Runge-Kutta, symmetric and corrected operators, open and closed,
  preconditioners that are made anew, Fourier's method, eddy viscosities, a kept mean velocity, scalars (several,
  bounded and not, with buoyancy), towards a steady flow;
- staggered grids: both schemes, one projection a step, a kept mean velocity, averages;
- compressible flow: in time and local steps, ramps, each time scheme, each limiter, orders 1 and 2, slopes from
  nodes, low Mach numbers, single precision, viscous, the model of Spalart and Allmaras with explicit, implicit and
  multigrid steps, sweeps alone, multigrid of both smoothers, frozen limiters, a mesh that turns, periodic sides;
- shallow water: both orders and precisions, boundaries in time, events;
- lattices: pull, push, in place and three-phase, all cells and fluid cells, half precision, each collision, eddy
  viscosity, openings, sponges, in space, immersed bodies (still, moved on the device and on the host, free particles,
  elastic) with pull, push and in place.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.dsl.checkpoint.memory import Memory
from fluxloom.dsl.checkpoint.rules import call_of
from fluxloom.dsl.checkpoint.state import State
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.observe import Observer
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.results.results import ResultFolder
from fluxloom_lab.problems.small.state_cases import CASES, changed

QUICK = ("airfoil", "edge_transport", "compressible in time", "lattice pull", "tsunami", "edge_flow wall law")
EVERY = [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in CASES]
STEPS = 3


class Heard(Observer):
    """What a step takes from before it, call by call."""

    def __init__(self) -> None:
        self.before: dict[int, Dat | Global] = {}
        self.overwritten = set[int]()
        self.changed = set[int]()
        self._calls: dict[int, Any] = {}

    def begin(self) -> None:
        """Begin a step: what was heard of changes stays."""
        self.before.clear()
        self.overwritten.clear()

    def loop(self, loop: Loop | Chain) -> bool:
        """Take note of a call, and let it run."""
        self._calls.setdefault(id(loop), (loop, call_of(loop)))
        _, call = self._calls[id(loop)]
        dead = {id(dat) for dat in call.dead}
        for use in call.uses:
            self._read(dat for dat in use.needed if id(dat) not in dead)
            self.overwritten |= {id(dat) for dat in use.overwritten}
            self.changed |= {id(dat) for dat in use.changed}
        for step in loop.steps if isinstance(loop, Chain) else (loop,):
            if isinstance(step, Reset):
                self.overwritten.add(id(step.target))
                continue
            self._read(a.data for a in step.bound.arguments if isinstance(a.data, Global))
            self.changed |= {id(item) for item in step.written}
        return False

    def chain(self, chain: Chain) -> bool:
        """Take note of a call, and let it run."""
        return self.loop(chain)

    def seen(self, data: Dat | Global) -> None:
        """The host looks."""
        self._read([data])

    def _read(self, data: Any) -> None:
        self.before |= {id(item): item for item in data if id(item) not in self.overwritten}


@contextmanager
def heard(context: Context, monkeypatch: pytest.MonkeyPatch) -> Iterator[Heard]:
    """Hear all calls in a context, and what the host sets as a whole."""
    found = Heard()
    write, value = Dat.write, Global.value
    assert isinstance(value, property)

    def written(dat: Dat, *arguments: Any, **options: Any) -> None:
        context.observer = None
        write(dat, *arguments, **options)
        context.observer = found
        found.overwritten.add(id(dat))
        found.changed.add(id(dat))

    def given(item: Global, new: Any) -> None:
        value.__set__(item, new)
        found.overwritten.add(id(item))

    with monkeypatch.context() as patched:
        patched.setattr(Dat, "write", written)
        patched.setattr(Global, "value", property(value.fget, given))
        context.observer = found
        yield found
        context.observer = None


def built(name: str) -> FlowRun[Any]:
    text, changes, _ = CASES[name]
    case, application = parse_case(Document(Path("case"), changed(tomllib.loads(text), changes), {}))
    return application.build(case, Context("cpu", threads=1, tuning=False))


@pytest.mark.parametrize("name", EVERY)
def test_all_that_a_step_reads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind some steps, and with the lines and samples that monitors take."""
    run = built(name)
    memory = Memory(run=run)
    run.begin(ResultFolder(None))
    with heard(run.flow.context, monkeypatch) as found:
        for _ in range(STEPS):
            run.advance()
        state = memory.state()
        kept = {id(item) for item in (*state.dats.values(), *state.globals.values(), *memory.forgotten())}
        found.begin()
        run.advance()
        run.advance()
        read = [item for item in found.before.values() if id(item) in found.changed]
        lost = sorted(item.name for item in read if id(item) not in kept)
    assert found.changed
    assert lost == [], lost


def test_what_is_missing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test can fail: it names a dat that a state lacks."""
    state = Memory.state

    def lacking(memory: Memory) -> State:
        found = state(memory)
        return replace(found, dats={key: dat for key, dat in found.dats.items() if not key.endswith(".q")})

    monkeypatch.setattr(Memory, "state", lacking)
    with pytest.raises(AssertionError, match="'q'"):
        test_all_that_a_step_reads("airfoil", monkeypatch)
