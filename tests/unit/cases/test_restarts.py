"""Six restarts in a row of every solver: in place, over other numbers of ranks, and over other devices.

A run that is killed six times, and one that nobody stops, have the same fields: with as many ranks on the same device
bit by bit, histories and all other tables too (`deterministic=plan`); over other numbers of ranks bit by bit with
`deterministic=global` where nothing of the case is divided (`CaseModel.divided`), else within the bounds here; over
other devices within the bounds here. `docs/checkpoints.md` has the table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.comm.threads import run_threads
from fluxloom_lab.problems.small.state_cases import CASES, DEVICES, RANKS, SOLVERS, changed
from tests.state_runs import Leg, leg, same

CUTS = (1, 2, 3, 5, 6, 8)
"""Steps behind which the run is killed."""
QUICK = ("airfoil", "edge_transport")


def few(names: Sequence[str]) -> list[object]:
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in names]


def hops(name: str, directory: Path, places: Sequence[tuple[int, str]], grade: str) -> tuple[Leg, Leg]:
    """Return a run of one piece in the first of some places, and one that is killed and goes on from place to place.

    Parameters
    ----------
    places
        Numbers of ranks and devices, in turn.
    grade
        Of what repeats, as ``run.schedule`` takes it.
    """
    text, changes, steps = CASES[name]
    changes = changes | {"run.schedule": f"deterministic={grade}"}
    steps = min(steps, CUTS[-1] + 4)

    def ran(where: int, path: Path, to: int, killed: bool, more: dict[str, int]) -> Leg:
        ranks, device = places[where % len(places)]
        options = {"killed": killed, "device": device, "save": False}
        if ranks == 1:
            return leg(text, path, to, changes | more, **options)
        return run_threads(ranks, lambda comm: leg(text, path, to, changes | more, comm=comm, **options))[0]

    whole = ran(0, directory / "whole", steps, False, {})
    for k, cut in enumerate(CUTS):
        found = ran(k, directory / "parts", cut, True, {"checkpoint.every": 1})
        assert (found.resumed.steps if found.resumed else 0) == (CUTS[k - 1] if k else 0)
        assert found.told == ()
    last = ran(len(CUTS), directory / "parts", steps, False, {})
    assert last.resumed is not None
    assert last.resumed.steps == CUTS[-1]
    return whole, last


def apart(one: Leg, other: Leg) -> float:
    """Return how far fields are apart at most, in parts of the largest value, those of speeds together; averages apart.

    Averages over steps towards a steady flow have all that steps which are divided among ranks do differently.
    """
    largest = {name: float(np.abs(values).max(initial=0.0)) for name, values in one.fields.items()}
    speed = max((largest[name] for name in ("u", "v", "w", "speed") if name in largest), default=0.0)
    scale = {name: speed if name in ("u", "v", "w") else size for name, size in largest.items()}
    return max(
        float(np.abs(other.fields[name] - values).max(initial=0.0)) / (scale[name] or 1.0)
        for name, values in one.fields.items()
        if not name.endswith(("_mean", "_rms")) and name not in ("uv", "uw", "vw")
    )


@pytest.mark.parametrize("name", few(SOLVERS))
def test_in_place(name: str, tmp_path: Path) -> None:
    """Fields and tables have the bits of a run of one piece."""
    whole, last = hops(name, tmp_path, [(1, "cpu")], "plan")
    assert same(whole, last) == []


@pytest.mark.parametrize("name", few([*RANKS]))
def test_over_ranks(name: str, tmp_path: Path) -> None:
    """From one to two, three, two, one, three, two."""
    text, changes, _ = CASES[name]
    case, _ = parse_case(Document(Path("case"), changed(tomllib.loads(text), changes), {}))
    assert bool(case.divided) == bool(RANKS[name])
    whole, last = hops(name, tmp_path, [(n, "cpu") for n in (1, 2, 3, 2, 1, 3, 2)], "global")
    assert apart(whole, last) <= RANKS[name]


@pytest.mark.opencl
@pytest.mark.parametrize("name", few(SOLVERS))
def test_over_devices(name: str, tmp_path: Path) -> None:
    """From compiled C to OpenCL, and where kernels alone are needed to Python, and back."""
    devices = ("cpu", "opencl") if name == "staggered" else ("cpu", "opencl", "reference")
    whole, last = hops(name, tmp_path, [(1, device) for device in devices], "plan")
    assert apart(whole, last) <= DEVICES[name]
