"""What a case of flow on edges looks at while it runs: probes."""

from __future__ import annotations

from fluxloom.app.cases.flow_monitors import BLOCK, ProbesObserver, ProbesTable
from fluxloom.flows.flow_plan import COMPONENTS
from fluxloom.solvers.edge_flow import EdgeFlow
from fluxloom.solvers.edge_probes import EdgeProbes

__all__ = ["edge_probes_observer"]

def edge_probes_observer(flow: EdgeFlow, table: ProbesTable) -> ProbesObserver:
    """Return what writes velocity and pressure at points to ``probes.csv``."""
    values = [*COMPONENTS[: flow.dimension], "p"]
    return ProbesObserver(flow, EdgeProbes(flow, table.points, BLOCK), "time", values, table.every)
