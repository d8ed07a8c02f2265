"""Order in time of flow on edges where the mesh stays as it is."""

from __future__ import annotations

import pytest

from fluxloom.dsl.context import Context
from fluxloom.solvers.edges.scheme import EdgeScheme
from fluxloom_lab.verify.edge_flow_time import LID, SLIP, WALLS, FlowInTime, orders_of_steps


def test_second_order_of_the_step() -> None:
    """Velocity and pressure between walls, 24 and 48 steps beside 192."""
    ((velocity, pressure),) = orders_of_steps(Context("cpu", threads=1, tuning=False), WALLS, (24, 48), 192, n=8)
    assert velocity > 1.85
    assert pressure > 1.8


@pytest.mark.long
@pytest.mark.parametrize("flow", [SLIP, WALLS, LID])
def test_order_of_short_steps(flow: FlowInTime) -> None:
    """The order does not fall as steps get shorter, as it does with ``tau`` of the step."""
    context = Context("cpu", threads=1, tuning=False)
    found = orders_of_steps(context, flow, (64, 128, 256), 2048)
    assert min(min(pair) for pair in found) > 1.9
    other = orders_of_steps(context, flow, (64, 128, 256), 2048, scheme=EdgeScheme())
    assert max(velocity for velocity, _ in other) < 1.5
