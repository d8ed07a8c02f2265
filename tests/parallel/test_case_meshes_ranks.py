"""Cases of flow on several ranks whose meshes need more than cells across faces: polyhedra, sectors, wide slopes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.cases.files.case import PartitionTable
from fluxloom.cases.files.loading import load_case
from fluxloom.cases.shared.mesh import FlowMeshTable, by_key, flow_domain
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.ranks.decompose_report import PartitionReport, SetReport
from fluxloom.flows.compressible.flow import Compressible
from fluxloom.flows.volumes import FlowDomain, flow_volumes
from fluxloom.fv.gradients.node_gradients import NODE_GRADIENTS
from fluxloom.mesh import box3d
from fluxloom.mesh.geometry.dual import dual
from fluxloom.mesh.io.formats import write
from tests.parallel.launch import mpiexec

ROOT = Path(__file__).resolve().parents[2]
SIDES = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax")

CASE = """
[case]
name = "polyhedra"
solver = "compressible"

[mesh]
file = "{file}"

[gas]
constant = 1.0
viscosity = { type = "constant", mu = 0.01 }

[flow]
mach = 0.3
pressure = 1.0
temperature = 1.0

[initial]
density = "1 + 0.2 * exp(-20 * ((x - 0.5)**2 + (y - 0.5)**2 + (z - 0.5)**2))"

[scheme]
turbulence = "spalart-allmaras"
gradients = "{gradients}"

[boundary]
ymin = {{ type = "wall" }}
xmin = {{ type = "far-field" }}
xmax = {{ type = "far-field" }}
ymax = {{ type = "far-field" }}
zmin = {{ type = "symmetry" }}
zmax = {{ type = "symmetry" }}

[surface]
patches = ["ymin"]

[run]
iterations = 3
threads = 1
"""


@pytest.fixture
def polyhedra(tmp_path: Path) -> Path:
    path = tmp_path / "cells.vtkhdf"
    write(path, dual(box3d(4, 3, 3, kind="tetra", perturb=0.1)))
    return path


def domain_of(comm: Comm, table: FlowMeshTable, shares: list[float] | None = None, method: str = "auto") -> FlowDomain:
    """Return the domain of a case with all sides as boundaries."""
    partition = PartitionTable(method=method)  # type: ignore[arg-type]
    context = Context("cpu", comm=comm, threads=1, tuning=False)
    return flow_volumes(flow_domain(table, partition, shares), context, SIDES)


def numbers_of(domain: FlowDomain) -> np.ndarray:
    shared = domain.volumes.shared
    return shared.cells.numbers


def cells_of(report: PartitionReport) -> SetReport:
    return next(found for found in report.sets if found.name == "cells")


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_file_of_polyhedra_is_dealt_out(polyhedra: Path, ranks: int) -> None:
    """Distances from walls and weights of slopes are those of one rank."""
    table = FlowMeshTable(file=str(polyhedra))
    alone = run_threads(1, lambda comm: domain_of(comm, table))[0]
    distance = alone.wall_distance(["ymin"])

    def work(comm: Comm) -> tuple[FlowDomain, np.ndarray, int]:
        domain = domain_of(comm, table)
        return domain, domain.wall_distance(["ymin"]), int(domain.node_gradients("green-gauss")[1].offsets[-1])

    found = run_threads(ranks, work)
    for domain, near, _ in found:
        np.testing.assert_array_equal(near, distance[numbers_of(domain)])
        report = domain.partition
        assert report is not None
        assert (report.ranks, report.on) == (ranks, "cells")
        assert sum(cells_of(report).owned) == cells_of(report).total == alone.volumes.cells
        assert 0 < report.edge_cut < alone.volumes.interior
    assert sum(entries for *_, entries in found) == alone.node_gradients("green-gauss")[1].offsets[-1]


def test_shares_and_methods_of_polyhedra(polyhedra: Path) -> None:
    table = FlowMeshTable(file=str(polyhedra))
    domain = run_threads(2, lambda comm: domain_of(comm, table, [3.0, 1.0], "block"))[0]
    np.testing.assert_array_equal(numbers_of(domain)[: domain.volumes.owned].max() + 1, domain.volumes.owned)
    assert domain.partition is not None
    assert domain.volumes.owned == pytest.approx(0.75 * cells_of(domain.partition).total, abs=1.0)
    assert domain.partition.method == "block"


def test_every_rank_hears_what_is_wrong(polyhedra: Path) -> None:
    def sides(comm: Comm) -> None:
        context = Context("cpu", comm=comm, threads=1, tuning=False)
        table = FlowMeshTable(nx=4, ny=4, sectors=[["xmin", "ymax"]], axis_point=[0.3, 0.4])
        with by_key():
            flow_volumes(flow_domain(table, PartitionTable()), context, ("xmax", "ymin"))

    with pytest.raises(CaseError, match=r"mesh\.sectors: the patches 'xmin' and 'ymax'"):
        run_threads(2, sides)

    def slopes(comm: Comm) -> None:
        domain_of(comm, FlowMeshTable(file=str(polyhedra))).node_gradients("none")  # type: ignore[arg-type]

    with pytest.raises(SolverError, match="'none' is unknown"):
        run_threads(2, slopes)


def run(comm: Comm, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and states of the cells of this rank after the steps of a case."""
    case, application = load_case(path)
    runner = application.build(case, Context("cpu", comm=comm, threads=1, tuning=False))
    assert isinstance(runner.flow, Compressible)
    for _ in range(case.run.iterations):
        runner.advance()
    shared = runner.flow.solver.volumes.shared
    number = shared.cells.numbers[: shared.cells.owned]
    return number, runner.flow.solver.states()


@pytest.mark.long
@pytest.mark.parametrize("gradients", ["faces", *NODE_GRADIENTS])
def test_a_case_with_polyhedra(polyhedra: Path, tmp_path: Path, gradients: str) -> None:
    path = tmp_path / "case.toml"
    path.write_text(CASE.format(file=polyhedra, gradients=gradients))
    alone = run_threads(1, lambda comm: run(comm, path))[0][1]
    found = np.full_like(alone, np.nan)
    for number, values in run_threads(2, lambda comm: run(comm, path)):
        found[number] = values
    np.testing.assert_allclose(found, alone, rtol=1e-12, atol=1e-14)


BLADES = """
import sys
import numpy as np
from fluxloom.cases.files.loading import load_case
from fluxloom.cases.compressible.case import CompressibleCase
from fluxloom.dsl.context import Context
from fluxloom.dsl.ranks.decompose_report import PartitionReport, SetReport
case, application = load_case(sys.argv[1])
given = case.model_dump()
given["mesh"]["blade_row"] |= {"along": 16, "before": 6, "after": 8, "across": 12, "span": 4}
runner = application.build(CompressibleCase.model_validate(given), Context("cpu", comm=comm, threads=1, tuning=False))
flow = runner.flow.solver
flow.iterate(100)
shared = flow.volumes.shared
number = shared.cells.numbers[: shared.cells.owned]
found = np.empty((runner.flow.cells, flow.components))
for places, values in comm.allgather((number, flow.states())):
    found[places] = values
if comm.rank == 0:
    np.save(sys.argv[2], found)
"""


@pytest.mark.long
@pytest.mark.mpi
def test_blades_in_a_sector_on_real_ranks(tmp_path: Path) -> None:
    """The example of a turning blade row, its sides joined by a rotation, turbulent: 100 steps of one rank and of two.

    Round-off grows along the way as differences of the flow do.
    """
    case = ROOT / "examples" / "blade_row.toml"
    found = []
    for ranks in (1, 2):
        mpiexec(ranks, BLADES, case, tmp_path / f"{ranks}.npy", timeout=300)
        found.append(np.load(tmp_path / f"{ranks}.npy"))
    size = np.abs(found[0]).max(axis=0)
    assert (np.abs(found[1] - found[0]).max(axis=0) < 1e-11 * size).all()
    assert np.ptp(found[0][:, 1]) > 50.0
