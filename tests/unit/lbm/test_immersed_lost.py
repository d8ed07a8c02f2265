"""Bodies in flows that blow up: markers that are nowhere end them as diverged, wherever the work on markers is done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import Divergence, SolverError
from fluxloom.dsl.context import Context
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.immersed import Elastic, Free, ImmersedBody, circle
from fluxloom.lbm.immersed.markers.spreading import support, support_places
from fluxloom.lbm.lattices import D2Q9
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from tests.lattice_names import immersed


def flow_of(body: ImmersedBody, comm: Comm | None = None, **options: Any) -> LatticeBoltzmann:
    context = Context("cpu", threads=1, tuning=False) if comm is None else Context("cpu", threads=1, comm=comm)
    flow = LatticeBoltzmann(context, (20, 20), viscosity=0.04, lattice=D2Q9)
    flow.immerse(immersed([body], **options))
    return flow


def soft() -> ImmersedBody:
    return ImmersedBody("ring", circle((10.3, 9.6), 3.0, retract=0.0), Elastic(stiffness=0.05))


def free() -> ImmersedBody:
    return ImmersedBody("disk", circle((10.3, 9.6), 3.0), Free(mass=60.0, displaced=28.0, inertia=270.0))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("value", [np.nan, 1e300])
@pytest.mark.parametrize("pipeline", ["device", "host", "host-serial"])
def test_lost_flows_lose_elastic_bodies(pipeline: str, value: float) -> None:
    """Within the steps after which a support is looked at: the body, the marker and its place are told."""
    flow = flow_of(soft(), pipeline=pipeline)
    flow.populations.write(value)
    place = r"step \d: marker 0 of body 'ring' is at \(-?(nan|inf).*\), in cells"
    with pytest.raises(Divergence, match=f"{place}: the flow is not finite any more; lower the stiffness of ring"):
        flow.step(8)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_ranks_lose_them_together() -> None:
    def lost(comm: Comm) -> str:
        flow = flow_of(soft(), comm)
        flow.populations.write(np.nan if comm.rank else 0.0)
        with pytest.raises(Divergence) as error:
            flow.step(12)
        return str(error.value)

    (said,) = set(run_threads(2, lost))
    assert "marker" in said


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("value", [np.nan, 1e300])
def test_lost_flows_lose_free_bodies(value: float) -> None:
    flow = flow_of(free())
    flow.populations.write(value)
    with pytest.raises(Divergence, match="body 'disk': its velocity is not finite any more"):
        flow.step(8)


def test_bodies_that_no_cell_is_near() -> None:
    """Refused before the first step: numbers of cells have 32 bits."""
    body = ImmersedBody("ring", circle((3e9, 9.6), 3.0, retract=0.0), Elastic(stiffness=0.05))
    with pytest.raises(SolverError, match=r"body 'ring' is at \(.*, 3e\+09\), in cells: no cell is so far away"):
        flow_of(body)


@pytest.mark.parametrize("periodic", [(True, True), (True, False)])
@pytest.mark.parametrize("margin", [0, 2])
def test_support_of_markers_far_apart(periodic: tuple[bool, bool], margin: int) -> None:
    """In a box with joined sides it is that of the same markers wrapped round, however far apart they have come."""
    box, rng = Box((17, 23), periodic), np.random.default_rng(0)
    near = rng.integers(0, (17, 20), (9, 2))
    far = near + np.array(box.shape) * rng.integers(-(1 << 25), 1 << 25, near.shape) * np.array(periodic)
    found = support(box, far, 3, margin)
    assert np.array_equal(found, support(box, near, 3, margin))
    exact = np.unique(support_places(box, far, 3))
    assert np.isin(exact, found).all()
    assert margin or np.array_equal(found, exact)
