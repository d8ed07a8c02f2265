"""Multigrid of compressible flow on several ranks: the states of one rank, with the same groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.fv.compressible.boundary import FarField, SlipWall
from fluxloom.fv.geometry.agglomeration import grouped, hierarchy
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.time_schemes import RK5
from fluxloom.mesh import box2d
from fluxloom.mesh.ranks.distribute import distribute_mesh
from fluxloom.mesh.ranks.slices import as_slice
from fluxloom.solvers.compressible.cycles import ExplicitSmoother, Multigrid
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.multigrid import MultigridSteps
from fluxloom.solvers.compressible.scheme import CompressibleScheme

MESH = box2d(12, 10, perturb=0.1)
STREAM = [1.0, 0.6, 0.05, 1.0]


def numbers_of(volumes: ControlVolumes) -> np.ndarray:
    """Return the global numbers of the cells of this rank and its halo."""
    return volumes.shared.cells.numbers


def pushed(x: np.ndarray) -> np.ndarray:
    """Return a source of momentum across the stream."""
    found = np.zeros((len(x), 4))
    found[:, 2] = 0.3 * np.exp(-30.0 * ((x - 0.5) ** 2).sum(axis=1))
    return found


def flow_of(comm: Comm, **options: Any) -> tuple[ControlVolumes, CompressibleFlow]:
    """Return a channel with a bump in the density."""
    volumes = control_volumes(MESH) if comm.size == 1 else shared_volumes(
        distribute_mesh(as_slice(comm, MESH), comm, method="rcb", maps=FLOW_MAPS))  # fmt: skip
    boundaries = {name: FarField(STREAM) if name[0] == "x" else SlipWall() for name in volumes.patches}
    context = fl.Context("cpu", comm=comm, tuning=False, threads=1)
    flow = CompressibleFlow(context, volumes, boundaries, **options)
    bump = lambda x: 1.0 + 0.1 * np.exp(-20.0 * ((x - 0.5) ** 2).sum(axis=1))[:, None]  # noqa: E731
    flow.start(lambda x: np.array(STREAM) * bump(x))
    return volumes, flow


def run(comm: Comm, groups: list[np.ndarray] | None) -> tuple[Any, ...]:
    """Make a start and two cycles; return the groups of each level, numbers and states of the cells, and norms."""
    volumes, flow = flow_of(comm, scheme=CompressibleScheme(time=RK5(), cfl=1.0))
    coarse, level = [], volumes
    for group in groups or ():
        coarse.append(grouped(level, group, coarse[-1].wetted if coarse else None))
        level = coarse[-1].volumes
    coarse = coarse or hierarchy(volumes, 2, fewest=4)
    steps = MultigridSteps(flow, Multigrid(levels=2, start=1, smoother=ExplicitSmoother()), coarse)
    steps.start()
    steps.step()
    steps.step()
    made, fine = [], volumes
    for found in coarse:
        made.append((numbers_of(fine)[: fine.owned], numbers_of(found.volumes)[found.group[: fine.owned]]))
        fine = found.volumes
    return made, numbers_of(volumes)[: volumes.owned], flow.states(), steps.norms()


def settled(comm: Comm) -> tuple[np.ndarray, np.ndarray, int]:
    """Return numbers and steady states of the cells, by sweeps, and the cycles for it."""
    volumes, flow = flow_of(comm, scheme=CompressibleScheme(limiter=None), source=pushed)
    steps = MultigridSteps(flow, Multigrid(), hierarchy(volumes, 1, fewest=4))
    norms = steps.solve(1e-10, 60)
    assert norms[-1] <= 1e-10 * norms[0]
    return numbers_of(volumes)[: volumes.owned], flow.states(), steps.cycles


@pytest.mark.long
def test_sweeps_settle_on_ranks() -> None:
    """Sweeps take what other ranks have from the sweep before, so that cycles differ, but not where they lead."""
    _, want, few = run_threads(1, settled)[0]
    assert np.abs(want - STREAM).max() > 1e-2
    for numbers, states, cycles in run_threads(2, settled):
        np.testing.assert_allclose(states, want[numbers], rtol=0.0, atol=1e-8)
        assert cycles < 2 * few


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2])
def test_states_of_one_rank(ranks: int) -> None:
    found = run_threads(ranks, lambda comm: run(comm, None))
    groups = []
    for level in zip(*(item[0] for item in found), strict=True):
        group = np.empty(sum(len(numbers) for numbers, _ in level), dtype=np.int64)
        for numbers, of in level:
            group[numbers] = of
        groups.append(group)
    assert len(groups) == 2
    _, _, want, norms = run_threads(1, lambda comm: run(comm, groups))[0]
    assert np.abs(want - STREAM).max() > 1e-3
    for _, numbers, states, there in found:
        np.testing.assert_allclose(states, want[numbers], rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(there, norms, rtol=1e-9)
