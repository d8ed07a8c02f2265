"""``fluxloom bench``: measure, and write the record."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fluxloom.app.case import parse_shares
from fluxloom.app.cli.console import (
    FusedOption,
    JsonOption,
    RanksOption,
    ScheduleOption,
    Session,
    ThreadsOption,
    TransportOption,
    facts,
    messages,
    output,
    table,
)
from fluxloom.app.crew import require_one, starts_ranks
from fluxloom.app.files import prepare_file, write_json
from fluxloom.app.ranks import start
from fluxloom.app.schedules import parse_schedule
from fluxloom.app.summary import HEADINGS, LEFT
from fluxloom.comm import detect, ending_together
from fluxloom.comm.base import Comm
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.dsl.schedule import Schedule
from fluxloom.dsl.transports import TRANSPORTS
from fluxloom.mesh.distribute import Partition
from fluxloom_lab.bench.base import METHODS, Bench, BenchOptions, Record
from fluxloom_lab.bench.registry import benches

__all__ = ["NAME", "command"]

NAME = "bench"

_WIDTH = 160
"""Letters of a line of a table."""


def _word(name: str, metavar: str, text: str) -> Any:
    """Return a text option without a default to show."""
    return typer.Option(name, metavar=metavar, help=text, show_default=False)


NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Benchmark; 'list' shows them.")]
CellsOption = Annotated[str, _word("--cells", "SIZE", "Size: 720k, 2.88M or I,J; of a box N or NX,NY,NZ.")]
PrecisionOption = Annotated[
    str, _word("--precision", "TYPE", "Storage: float64, float32 or float16 (lbm); double or single (fem).")
]
LayoutOption = Annotated[str, _word("--layout", "NAME", "Layout of values: aos, soa or blocked.")]
StrategyOption = Annotated[str, _word("--strategy", "NAME", "Race strategy, in place of the schedule's.")]
BlockOption = Annotated[
    int,
    typer.Option("--block", min=0, metavar="N", show_default=False,
                 help="Block, in place of the schedule's; on GPUs work items a group."),
]  # fmt: skip
IterationsOption = Annotated[
    int, typer.Option("--iterations", "-n", min=0, metavar="N", help="Iterations a round; 0: its default.")
]
RoundsOption = Annotated[int, typer.Option("--rounds", min=0, metavar="N", help="Timed rounds; 0: its default.")]
ExhaustiveOption = Annotated[bool, typer.Option("--exhaustive", help="Time every schedule of each loop too (airfoil).")]
PartitionOption = Annotated[
    str, typer.Option("--partition", metavar="NAME", help="How ranks divide the mesh: auto, kway, rcb or block.")
]
SharesOption = Annotated[
    str, typer.Option("--shares", metavar="TEXT", help="Cells of each rank: auto (equal), measured, or 3,1.")
]
StrategiesOption = Annotated[
    bool, typer.Option("--strategies", help="Compare all strategies too (fem), and layouts (airfoil).")
]


DevicesOption = Annotated[str, _word("--devices", "NAMES", "Devices of one process: cuda:0,cpu:12 (hybrid).")]
PeersOption = Annotated[
    str, _word("--peers", "NAMES", "Programs to compare with: petsc (krylov), openfoam (cavity), lbmpy,xlb (lbm).")
]
TableOption = Annotated[str, _word("--table", "NAME", "kernels: the loops over faces, K1 to K10 (compressible).")]
ModelOption = Annotated[str, _word("--model", "NAME", "euler, laminar or rans (compressible); edges (kratos).")]
FluxOption = Annotated[str, _word("--flux", "NAME", "Numerical flux: roe, hllc, ausm+-up, rusanov (compressible).")]
LimiterOption = Annotated[str, _word("--limiter", "NAME", "venkatakrishnan, barth-jespersen or none (compressible).")]
LoopsOption = Annotated[str, _word("--loops", "NAME", "Fluxes by faces or cells (compressible).")]
StorageOption = Annotated[str, _word("--storage", "TYPE", "Of slopes: float64 or float32 (compressible).")]
MeshOption = Annotated[str, _word("--mesh", "FILE", "Mesh of a file, in place of a box (compressible, kratos, setup).")]
RefineOption = Annotated[
    int, typer.Option("--refine", min=0, metavar="N", help="Halve all edges of the mesh so many times.")
]
KindOption = Annotated[str, _word("--kind", "NAME", "Cells of a box: hexahedron, tetra, prism or pyramid (setup).")]
OrderOption = Annotated[str, _word("--order", "P,...", "Orders of elements: 1,2,3,4 (fem).")]
DofsOption = Annotated[str, _word("--dofs", "N", "Degrees of freedom: 250k, 4M (fem).")]
FormatsOption = Annotated[
    str, _word("--formats", "NAMES", "local, matrix_free, csr, ell, sliced, lazy; all by default (fem).")
]
IntegrationOption = Annotated[str, _word("--integration", "A,...", "Orders of integration: A, B and C (fem).")]
MethodsOption = Annotated[str, _word("--methods", "NAMES", "What is timed: thomas,partition,... (tridiagonal).")]
NodesOption = Annotated[str, _word("--nodes", "N,...", "Numbers of points: 3k,24k,185k (edge_flow).")]
PreconditionerOption = Annotated[
    str, _word("--preconditioner", "NAMES", "Of the pressure: jacobi, smoothed_aggregation (edge_flow).")
]
TuneOption = Annotated[bool, typer.Option("--tune", help="Time tuned loops too, beside the others (edge_flow).")]
LatticeOption = Annotated[str, _word("--lattice", "NAMES", "d2q9, d3q19, d3q27 (lbm).")]
CollisionOption = Annotated[str, _word("--collision", "NAMES", "bgk, trt, mrt, central, cumulant (lbm).")]
StreamingOption = Annotated[str, _word("--streaming", "NAMES", "pull, push, in-place, three-phase (lbm).")]
ForceOption = Annotated[str, _word("--force", "NAME", "How a force acts: none, uniform or field (lbm).")]
WallsOption = Annotated[bool, typer.Option("--walls", help="A cavity with bodies in place of a periodic box (lbm).")]
FluidOption = Annotated[
    str, _word("--fluid", "SHARES", "Spheres leave 0.1,0.3,1 of the box; all cells stored, and fluid ones (lbm).")
]
FullOption = Annotated[bool, typer.Option("--full", help="Sweep all that is not named (lbm); all sizes (ib).")]
ThreadsSweepOption = Annotated[
    bool, typer.Option("--threads-sweep", help="Every number of threads too, close together and spread (lbm).")
]
PythonOption = Annotated[str, _word("--python", "FILE", "Interpreter that has Kratos (kratos).")]
DrawOption = Annotated[str, _word("--draw", "FILE", "Draw the scaling as a picture (scaling).")]
SourcesOption = Annotated[
    str, _word("--from", "FILES", "Draw these records, a.json,b.json, and measure nothing (scaling).")
]
StrongOption = Annotated[str, _word("--strong", "CELLS,...", "Sizes that stay: 720k,2.88M (scaling, mixed, hybrid).")]
WeakOption = Annotated[str, _word("--weak", "CELLS", "Cells a rank (scaling); rows a rank, of a product alone (les).")]
TransportsOption = Annotated[
    bool, typer.Option("--transports", help="Compare all ways of messages too (airfoil, compressible).")
]


def command(
    session: typer.Context,
    name: NameArgument,
    device: Annotated[str | None, typer.Option("--device", metavar="NAME", help="Device.", show_default="cpu")] = None,
    threads: ThreadsOption = None,
    cells: CellsOption = "",
    iterations: IterationsOption = 0,
    rounds: RoundsOption = 0,
    precision: PrecisionOption = "",
    layout: LayoutOption = "",
    schedule: ScheduleOption = None,
    strategy: StrategyOption = "",
    block: BlockOption = 0,
    fused: FusedOption = None,
    exhaustive: ExhaustiveOption = False,
    strategies: StrategiesOption = False,
    ranks: RanksOption = None,
    partition: PartitionOption = "auto",
    shares: SharesOption = "auto",
    transport: TransportOption = None,
    transports: TransportsOption = False,
    strong: StrongOption = "",
    weak: WeakOption = "",
    draw: DrawOption = "",
    sources: SourcesOption = "",
    devices: DevicesOption = "",
    peers: PeersOption = "",
    table_name: TableOption = "",
    model: ModelOption = "",
    flux: FluxOption = "",
    limiter: LimiterOption = "",
    loops: LoopsOption = "",
    storage: StorageOption = "",
    mesh: MeshOption = "",
    refine: RefineOption = 0,
    kind: KindOption = "",
    python: PythonOption = "",
    nodes: NodesOption = "",
    preconditioner: PreconditionerOption = "",
    tune: TuneOption = False,
    order: OrderOption = "",
    dofs: DofsOption = "",
    formats: FormatsOption = "",
    integration: IntegrationOption = "",
    methods: MethodsOption = "",
    lattice: LatticeOption = "",
    collision: CollisionOption = "",
    streaming: StreamingOption = "",
    force: ForceOption = "",
    walls: WallsOption = False,
    fluid: FluidOption = "",
    full: FullOption = False,
    threads_sweep: ThreadsSweepOption = False,
    json_file: JsonOption = None,
) -> None:
    """Run a benchmark; its copy bandwidth is measured between the rounds."""
    if status := _started(session, name, json_file):
        raise typer.Exit(status)


def _started(session: typer.Context, name: str, json_file: Path | None) -> int:
    """Run what a command line asks for, or list the benchmarks; return the exit status."""
    words, given = session.obj if isinstance(session.obj, Session) else Session(), session.params
    with ending_together(detect()) as comm:
        if name == "list":
            _list(comm)
            return 0
        if "numbers" not in getattr(benches()[name], "extras", ()):
            require_one(given["ranks"], given["device"], given["threads"])
        return _run(name, _options(given, comm, words.command), words.arguments, json_file)


def _options(given: Mapping[str, Any], comm: Comm, command_line: str) -> BenchOptions:
    """Return the options of a command line: what is not named here is taken as it was given."""
    known = {item.name for item in fields(BenchOptions)}
    plain = {key: value for key, value in given.items() if key in known}
    method = _checked(given["partition"], given["transport"])
    schedule = _schedule(given["schedule"], given["strategy"], given["block"])
    return BenchOptions(**plain | {
        "device": given["device"] or "cpu", "threads": given["threads"] or 0, "schedule": schedule,
        "fused": given["fused"] is not False, "command": command_line, "comm": comm, "ranks": given["ranks"] or "",
        "partition": method, "shares": parse_shares(given["shares"]), "transport": given["transport"] or "auto",
        "table": given["table_name"],
    })  # fmt: skip


def _checked(partition: str, transport: str | None) -> Partition:
    """Return a way to divide meshes; raise where it, or the way to send messages, is none of the known ones."""
    if partition not in METHODS:
        raise _unknown("--partition", partition, METHODS)
    if transport not in (None, "auto", *TRANSPORTS):
        raise _unknown("--transport", transport, ("auto", *TRANSPORTS))
    return partition


def _unknown(option: str, given: str, known: Sequence[str]) -> CaseError:
    """Return what is wrong with an option that is none of the known ones."""
    return CaseError(f"{option} {given!r}{did_you_mean(given, known)} (allowed: {', '.join(known)})")


def _list(comm: Comm) -> None:
    """Print the benchmarks."""
    known = benches()
    if comm.rank == 0:
        facts([(key, known[key].title) for key in known.names()])


def _run(name: str, options: BenchOptions, arguments: Sequence[str], json_file: Path | None) -> int:
    """Run a benchmark on this rank, or start those that are asked for; return the exit status."""
    chosen = benches()[name]
    _require_extras(name, chosen, options)
    told, first = messages(), options.comm.rank == 0
    if first and json_file is not None:
        prepare_file(json_file)
    specs = () if "numbers" in getattr(chosen, "extras", ()) else starts_ranks(options.comm, options.ranks)
    count, shares = len(specs) or options.comm.size, options.shares
    if not isinstance(shares, str) and len(shares) != count:
        raise CaseError(f"--shares: {len(shares)} numbers for {count} rank{'s' if count > 1 else ''}: give one a rank")
    if specs:
        return start(specs, arguments)

    def tell(line: str) -> None:
        if first:
            told.print(line, soft_wrap=True, markup=False)

    def keep(record: Record) -> None:
        if first and json_file is not None:
            write_json(json_file, record.as_json())

    record = chosen.run(replace(options, keep=keep), tell)
    if first:
        _show(name, record)
    if first and json_file is not None:
        keep(record)
        tell(f"{json_file}")
    return 0


def _schedule(text: str | None, strategy: str, block: int) -> Schedule:
    """Return a schedule with what is named by itself put in."""
    schedule = parse_schedule(text or "auto")
    return replace(schedule, strategy=strategy or schedule.strategy, block=block or schedule.block)


def _require_extras(name: str, bench: Bench, options: BenchOptions) -> None:
    """Raise where an option is given that a benchmark does not know.

    Raises
    ------
    CaseError
        Naming the option.
    """
    known = getattr(bench, "extras", ())
    extras = ("layout", "exhaustive", "strategies", "ranks", "transports", "strong", "weak", "draw", "sources")
    flow = ("table", "model", "flux", "limiter", "loops", "storage", "mesh", "refine", "kind", "python",
            "nodes", "preconditioner", "tune", "order", "dofs", "formats", "integration", "methods",
            "lattice", "collision", "streaming", "force", "walls", "fluid", "full",
            "threads_sweep")  # fmt: skip
    for extra in (*extras, "devices", "peers", *flow):
        if getattr(options, extra) and extra not in known:
            word = "from" if extra == "sources" else extra.replace("_", "-")
            raise CaseError(f"the benchmark {name} has no option --{word}")
    divided = "ranks" in known and "slices" not in known
    for option, value, fits in (
        ("partition", options.partition, divided),
        ("transport", options.transport, "ranks" in known),
        ("shares", options.shares, divided and "numbers" not in known),
    ):
        if value != "auto" and not fits:
            raise CaseError(f"the benchmark {name} has no option --{option}")
    if options.comm.size > 1 and ("ranks" not in known or "numbers" in known):
        raise CaseError(f"the benchmark {name} runs on one rank: start it without mpiexec")
    _ = options.chosen_layout


def _show(name: str, record: Record) -> None:
    """Print a record: the loops, the numbers, then a table of each metric that has many."""
    shown = [row.cells(simd=record.device == "cpu") for row in record.loops]
    title = f"{name} on {record.device_name}"
    if shown:
        table(title, HEADINGS, shown, left=LEFT)
    else:
        output().print(title, style="bold", soft_wrap=True, markup=False)
    rows = [("copy", f"{record.copy_gbs:.1f} GB/s")] if record.copy_gbs else []
    rows.append(("seconds", f"{record.seconds:.6g}"))
    rows += [(key, _text(value)) for key, value in record.metrics.items() if not _rows(value)]
    facts(rows)
    for key, value in record.metrics.items():
        if _rows(value):
            _print_table(key, _rows(value))


def _rows(value: object) -> list[dict[str, Any]]:
    """Return the rows of a metric that is a list of mappings, or a mapping of mappings; none for others."""
    rows: list[Any] = value if isinstance(value, list) else []
    if isinstance(value, dict) and all(isinstance(row, dict) for row in value.values()):
        rows = [{"loop": name, **row} for name, row in value.items()]
    return rows if all(isinstance(row, dict) for row in rows) else []


def _print_table(name: str, rows: list[dict[str, Any]]) -> None:
    """Print rows, of which one that failed lacks numbers; where a line would be too long, headings take several."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    left = [n for n, key in enumerate(keys) if isinstance(rows[0].get(key), str)]
    rows = [row | {"error": "failed"} if isinstance(row.get("error"), str) else row for row in rows]
    shown = [[_cell(row.get(key)) for key in keys] for row in rows]
    columns = zip(keys, zip(*shown, strict=True), strict=True)
    long = sum(2 + max(len(key), *map(len, column)) for key, column in columns) > _WIDTH
    table(name, [key.replace("_", "\n" if long else " ") for key in keys], shown, left=left)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return " ".join(f"{item:.4g}" if isinstance(item, float) else _cell(item) for item in value)
    return "-" if value is None else str(value)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.10g}"
    return "-" if value is None else json.dumps(value)
