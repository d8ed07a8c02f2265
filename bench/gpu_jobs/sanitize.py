"""Runs a small case of each solver on a GPU under the tools of compute-sanitizer, and prints a table.

    python bench/gpu_jobs/sanitize.py [--tools memcheck,racecheck] [--only lattice,tsunami] [--limit 60] [--total 460]

Each tool first has to report a fault planted for it, a raw kernel of CuPy, and to be silent about the same kernel
without the fault. CuPy's memory pool is off: each array is an allocation of its own, of which memcheck knows the end.

Exit status: 0 if nothing is reported, 1 if something is, a case fails, or a planted fault is not found, 77 without
compute-sanitizer or CuPy. `--device cpu` tries the cases out, without tools.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["CASES", "TOOLS"]

ROOT = Path(__file__).resolve().parents[2]
MISSING = 77
ENDS = ("converged", "end reached", "not converged")
TOOLS = ("memcheck", "initcheck", "synccheck", "racecheck")

CASES: dict[str, tuple[str, ...]] = {
    "airfoil": ("airfoil_small", "run.iterations=4"),
    "compressible": ("naca0012", "run.iterations=3", "mesh.around=48", "mesh.outward=16"),
    "compressible-implicit": ("naca0012_implicit", "run.iterations=2", "mesh.around=48", "mesh.outward=16"),
    "incompressible": ("cavity", "run.iterations=3"),
    "incompressible-les": ("taylor_green", "run.iterations=2", "mesh.nx=8", "mesh.ny=8", "mesh.nz=8"),
    "edge-flow": ("edge_cavity", "run.iterations=3"),
    "edge-transport": ("edge_transport", "run.iterations=3"),
    "diffusion": ("diffusion", "run.iterations=3"),
    "staggered": ("staggered_cavity", "run.iterations=3"),
    "lattice": ("lattice_cylinder", "run.iterations=4"),
    "lattice-moving": ("lattice_moving", "run.iterations=4"),
    "tsunami": ("tsunami", "run.time=20.0", "run.iterations=2"),
}
"""Case of `examples` and what is set in it."""

# Without the pool of CuPy, in this process, which the tool watches.
_CASE = """
import sys
import cupy
cupy.cuda.set_allocator(None)
from fluxloom.cli.main import main
sys.exit(main(sys.argv[1:]))
"""

# The fault of each tool, if `faulty` is 1: a write behind the end, a read of what was never written, a barrier that
# half of a warp goes round, a read of shared memory that another thread writes.
_PLANTED = r"""
import sys
import cupy
cupy.cuda.set_allocator(None)
tool, faulty = sys.argv[1], int(sys.argv[2])
source = r'''
extern "C" __global__ void memcheck(const double *in, double *out, int faulty) { out[threadIdx.x + faulty] = 1.0; }
extern "C" __global__ void initcheck(const double *in, double *out, int faulty)
{ out[threadIdx.x] = faulty ? in[threadIdx.x] : 1.0; }
extern "C" __global__ void synccheck(const double *in, double *out, int faulty)
{
    if (!faulty || threadIdx.x < 16) __syncthreads();
    out[threadIdx.x] = 1.0;
}
extern "C" __global__ void racecheck(const double *in, double *out, int faulty)
{
    __shared__ double shared[64];
    shared[threadIdx.x] = threadIdx.x;
    if (!faulty) __syncthreads();
    out[threadIdx.x] = shared[(threadIdx.x + 33) % 64];
}
'''
kernel = cupy.RawModule(code=source).get_function(tool)
kernel((1,), (64,), (cupy.empty(64), cupy.zeros(64), cupy.int32(faulty)))
try:
    cupy.cuda.runtime.deviceSynchronize()
except cupy.cuda.runtime.CUDARuntimeError as error:
    print(error)
"""


@dataclass(frozen=True)
class Row:
    """What became of a case under a tool: how many errors it counts (-1: it has no summary), and how the case ended."""

    tool: str
    case: str
    errors: int
    status: str
    seconds: float

    @property
    def good(self) -> bool:
        """Whether nothing was reported, and the case ran to its end."""
        return self.errors == 0 and self.status in ENDS


def compute_sanitizer() -> str:
    """Return the program: on the path, in a toolkit, or in a package of Python; empty if there is none."""
    if found := shutil.which("compute-sanitizer"):
        return found
    places = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")), *sorted(Path("/usr/local").glob("cuda-*"))]
    for place in (*places, Path("/opt/cuda")):
        for path in (place / "bin" / "compute-sanitizer", place / "compute-sanitizer" / "compute-sanitizer"):
            if path.exists():
                return str(path)
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).rglob("compute-sanitizer")):
            if path.is_file():
                path.chmod(path.stat().st_mode | 0o111)
                return str(path)
    return ""


def counted(text: str) -> int:
    """Return the errors that the log of a tool counts; hazards of racecheck, warnings too. -1 without a summary."""
    found = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)", text)
    return max(map(int, found)) if found else -1


class Watch:
    """Runs programs under tools until the time is up."""

    def __init__(self, program: str, folder: Path, limit: float, total: float) -> None:
        self.program, self.folder, self.limit = program, folder, limit
        self.end = time.monotonic() + total

    def run(self, tool: str, name: str, words: list[str]) -> Row:
        """Run a program under a tool, none if it is empty; print what it reports."""
        left = min(self.limit, self.end - time.monotonic())
        if left < 5:
            return Row(tool, name, -1, "not begun: no time left", 0.0)
        log, output = self.folder / f"{name}-{tool}.log", self.folder / f"{name}-{tool}.txt"
        watched = [self.program, "--tool", tool, "--log-file", str(log), "--print-limit", "20"] if tool else []
        begin = time.monotonic()
        with output.open("wb") as file:
            process = subprocess.Popen(watched + words, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
                                       stdout=file, stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
            try:
                status = f"exit status {process.wait(left)}"
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                status = f"ended after {left:.0f} s"
        text = log.read_text(errors="replace") if log.exists() else ""
        record = self.folder / f"{name}-{tool}" / "run.json"
        if record.exists():
            status = json.loads(record.read_text(encoding="utf-8"))["status"]
        row = Row(tool, name, counted(text) if tool else 0, status, time.monotonic() - begin)
        if not row.good and not name.startswith("planted"):
            said = output.read_text(errors="replace").strip().splitlines()[-6:]
            print("\n    ".join([f"{name} {tool}: {row}", *text.splitlines()[:14], *said]), flush=True)
        return row

    def trusted(self, tool: str) -> bool:
        """Whether a tool reports the planted fault, and nothing without it."""
        words = [sys.executable, "-c", _PLANTED, tool]
        found = [self.run(tool, f"planted-{fault}", [*words, fault]) for fault in "10"]
        good = found[0].errors > 0 and found[1].errors == 0
        print(f"{tool}: the planted fault is {'found' if good else 'NOT found'} ({found[0].errors} and "
              f"{found[1].errors} reports)", flush=True)  # fmt: skip
        return good


def commands(names: list[str], device: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each case and the words that run it."""
    for name in names:
        case, *settings = CASES[name]
        words = [word for setting in settings for word in ("--set", setting)]
        start = [sys.executable, "-c", _CASE] if device == "cuda" else [sys.executable, "-m", "fluxloom"]
        yield name, [*start, "run", f"examples/{case}.toml", "--device", device, "--overwrite", *words]


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", default=",".join(TOOLS), help="separated by commas")
    parser.add_argument("--only", default=",".join(CASES), help="cases, separated by commas")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a case")
    parser.add_argument("--total", type=float, default=460.0, help="seconds of all")
    parser.add_argument("--jobs", type=int, default=4, help="cases at a time")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    program = compute_sanitizer() if given.device == "cuda" else ""
    if given.device == "cuda" and not (program and importlib.util.find_spec("cupy")):
        print("compute-sanitizer or CuPy is missing: the first comes with the CUDA toolkit, and with the package "
              "nvidia-cuda-sanitizer-api")  # fmt: skip
        return MISSING
    with tempfile.TemporaryDirectory(prefix="fluxloom-sanitize-") as name:
        watch = Watch(program, Path(name), given.limit, given.total)
        tools = given.tools.split(",") if program else [""]
        trusted = [tool for tool in tools if not tool or watch.trusted(tool)]
        runs = [(tool, case, [*words, "--output", f"{name}/{case}-{tool}"]) for tool in trusted
                for case, words in commands(given.only.split(","), given.device)]  # fmt: skip
        with ThreadPoolExecutor(given.jobs) as pool:
            rows = list(pool.map(lambda one: watch.run(*one), runs))
    print(f"{'case':24} {'tool':10} {'reports':>8} {'seconds':>8}  status")
    for row in rows:
        print(f"{row.case:24} {row.tool:10} {row.errors:8} {row.seconds:8.1f}  {row.status}")
    if given.json:
        record = {"case": "sanitize-cuda", "trusted": trusted, "rows": [asdict(row) for row in rows]}
        given.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return int(len(trusted) < len(tools) or not all(row.good for row in rows))


if __name__ == "__main__":
    sys.exit(main())
