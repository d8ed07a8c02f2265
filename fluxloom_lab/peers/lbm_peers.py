"""Other lattice Boltzmann libraries for the benchmark ``lbm``: lbmpy and XLB, each in an environment of its own.

They are run as programs and share nothing with us: lbmpy is under the AGPL, and XLB needs versions of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

from fluxloom.comm.launchers import without_launcher
from fluxloom.core.errors import CaseError, DeviceUnavailable, FluxloomError
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom.lbm.lattices import SOUND_SPEED_SQUARED
from fluxloom_lab.bench.base import Tell
from fluxloom_lab.bench.boxes.lbm_choice import Choice, LbmOptions
from fluxloom_lab.bench.boxes.lbm_flow import SPEED, VISCOSITY, viscosity_error
from fluxloom_lab.bench.boxes.lbm_measure import Measured
from fluxloom_lab.peers.programs import peers_from_text, run_program

__all__ = ["PEERS", "Library", "find_python", "lattice_peers", "peer_rows", "told"]

Row = dict[str, Any]

_SAME = 0.05
"""By how much the relative errors of the viscosities may differ: otherwise it was another flow."""

_SECONDS, _PATIENCE = 3600.0, 120.0
_LOOK = """
import sys
from importlib.util import find_spec
print("fluxloom:", all(find_spec(name) is not None for name in sys.argv[1:]))
"""


@dataclass(frozen=True)
class Library:
    """Another library.

    Attributes
    ----------
    name
        Its name in ``--peers``.
    script
        What runs in its interpreter.
    modules
        That its interpreter has to have.
    variable
        Environment variable with the interpreter.
    install, install_gpu
        What to install, for ``pip``, and what more for a GPU.
    precisions
        Of storage, that it has.
    backends
        Each run by itself; one empty name where there is no choice.
    """

    name: str
    script: Path
    modules: tuple[str, ...]
    variable: str
    install: str
    install_gpu: str
    precisions: tuple[str, ...]
    backends: tuple[str, ...] = ("",)


_HERE = Path(__file__).parent
PEERS: Mapping[str, Library] = {
    "lbmpy": Library(
        "lbmpy", _HERE / "lbm_peer_lbmpy.py", ("lbmpy", "pystencils"), "FLUXLOOM_LBMPY_PYTHON",
        "lbmpy py-cpuinfo", "cupy-cuda12x", ("float64", "float32"),
    ),
    "xlb": Library(
        "xlb", _HERE / "lbm_peer_xlb.py", ("xlb", "jax", "warp"), "FLUXLOOM_XLB_PYTHON",
        "xlb warp-lang==1.10.1", "jax[cuda12]", ("float64", "float32", "float16"), ("warp", "jax"),
    ),
}  # fmt: skip
"""The libraries by name."""


def lattice_peers(
    options: LbmOptions, context: Context, choices: Sequence[Choice], tell: Tell
) -> Callable[[Measured, tuple[int, ...], int, int], list[Row]] | None:
    """Return what measures the libraries that are named, None where none is.

    What is missing is said now, before anything is measured. The result takes our own measurement, the shape, steps a
    round and rounds, and returns the rows of a table.

    Raises
    ------
    CaseError
        If there is no such library, or it does not have the flow.
    DeviceUnavailable
        If no interpreter has it; the message says how to install it.
    """
    names = peers_from_text(options.peers, PEERS)
    if options.python and len(names) != 1:
        raise CaseError(f"--python names the interpreter of one of --peers {','.join(PEERS)}")
    if not names:
        return None
    device = context.device.name.partition(":")[0]
    choice = choices[0]
    if len(choices) > 1 or not choice.plain or choice.collision != "bgk":
        raise CaseError("--peers compares one flow: BGK in a periodic box, without a force, one name an option")
    if device not in ("cpu", "cuda"):
        raise CaseError(f"--peers compares on a processor or with CUDA, not on {context.device.name}")
    for name in names:
        if choice.precision not in PEERS[name].precisions:
            raise CaseError(f"--peers {name} has no storage in {choice.precision}")
    pythons = {name: find_python(PEERS[name], options.python) for name in names}

    def rows(ours: Measured, shape: tuple[int, ...], count: int, rounds: int) -> list[Row]:
        case = {
            "device": "gpu" if device == "cuda" else "cpu", "lattice": choice.lattice, "shape": shape[::-1],
            "precision": choice.precision, "threads": context.threads, "steps": count, "rounds": rounds,
            "omega": 1.0 / (VISCOSITY / SOUND_SPEED_SQUARED + 0.5), "speed": SPEED,
        }  # fmt: skip
        found: list[Row] = []
        for name, python in pythons.items():
            for backend in PEERS[name].backends:
                found += _measured(PEERS[name], python, case | {"backend": backend}, ours, context, tell)
        return found

    return rows


def find_python(library: Library, named: str = "") -> str:
    """Return an interpreter that has a library: the named one, that in its variable, or any in the path.

    Raises
    ------
    DeviceUnavailable
        If none has it.
    """
    given = named or os.environ.get(library.variable, "")
    found = filter(None, map(shutil.which, ("python3", "python")))
    candidates = [given] if given else list(dict.fromkeys([sys.executable, *found]))
    for candidate in candidates:
        if _has(candidate, library.modules):
            return candidate
    raise DeviceUnavailable(
        f"comparing with {library.name} needs an interpreter that has {' and '.join(library.modules)}, not "
        f"{', '.join(candidates)}: `pip install {library.install}` into an environment (for a GPU also "
        f"{library.install_gpu}), and name its interpreter with --python or {library.variable}"
    )


def _has(python: str, modules: Sequence[str]) -> bool:
    """Return whether an interpreter has some modules, without loading them."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _LOOK, *modules], capture_output=True, text=True, check=False, timeout=_PATIENCE,
            env=without_launcher(),
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "fluxloom: True" in done.stdout


def _measured(
    library: Library, python: str, case: Row, ours: Measured, context: Context, tell: Tell
) -> list[Row]:  # fmt: skip
    """Run a library, and measure the memory before and after it."""
    meter = meter_for(context.device, context.threads)
    before = meter.measure(3).copy_gbs
    lines = run_program(
        [python, "-I", str(library.script), json.dumps(case)], name=library.name,
        environment=_environment(context, case["threads"]), seconds=_SECONDS,
    )  # fmt: skip
    copies = (before, meter.measure(3).copy_gbs)
    rows = peer_rows(library.name, told(library.name, lines), case, ours, copies)
    for row in rows:
        done = row.get("error") or f"{row['mlups']:,.1f} MLUPS, ours {row['ours_over_peer']:.2f} times as many"
        tell(f"{row['peer']} {row['way']} ({row['version']}), {row['threads']} threads: {done}")
    return rows


def _environment(context: Context, threads: int) -> dict[str, str]:
    """Return the variables of a peer: as many threads as ours, and the same GPU."""
    found = without_launcher() | {"OMP_NUM_THREADS": str(threads), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    number = context.device.name.partition(":")[2]
    if number:
        seen = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        found["CUDA_VISIBLE_DEVICES"] = seen[int(number)] if seen != [""] else number
    return found


def told(name: str, lines: Sequence[str]) -> list[Row]:
    """Return what a script has said: the objects of lines that begin with ``fluxloom:``.

    Raises
    ------
    FluxloomError
        If it said nothing.
    """
    found = [json.loads(line.partition(" ")[2]) for line in lines if line.startswith("fluxloom: {")]
    if not found:
        raise FluxloomError("\n".join([f"{name} ended without a result; it said:", *lines[-10:]]))
    return found


def peer_rows(name: str, said: Sequence[Row], case: Row, ours: Measured, copies: tuple[float, float]) -> list[Row]:
    """Return the rows of a library: its updates a second, the copy around them, and ours over its.

    A way that failed, or whose viscosity shows that it stepped another flow, has a row with the error.

    Parameters
    ----------
    said
        What the script said, an object a way.
    copies
        Copy bandwidth before and after, GB/s.
    """
    rows = []
    for item in said:
        row = {"peer": name, "way": item["way"], "version": item["version"], "threads": item["threads"]}
        rows.append(row | ({"error": item["error"]} if "error" in item else _numbers(item, case, ours, copies)))
    return rows


def _numbers(item: Row, case: Row, ours: Measured, copies: tuple[float, float]) -> Row:
    cells, count = prod(case["shape"]), item["round_steps"]
    seconds, alone = median(item["seconds"]), item["kernel_seconds"]
    mlups = 1e-6 * cells * count / seconds
    error = viscosity_error(tuple(reversed(case["shape"])), tuple(item["energies"]), count * len(item["seconds"]))
    row = {
        "mlups": mlups,
        "mlups_best": 1e-6 * cells * count / min(item["seconds"]),
        "kernel_mlups": 1e-6 * cells * count / median(alone) if alone else None,
        "percent_of_copy": 0.1 * mlups * ours.choice.bytes_per_cell / (0.5 * sum(copies)),
        "copy_before_gbs": copies[0],
        "copy_after_gbs": copies[1],
        "viscosity_error": error,
        "ours_over_peer": ours.metrics["mlups"] / mlups,
    }
    wanted = ours.metrics["viscosity_error"]
    if error is None or wanted is None or abs(error - wanted) <= _SAME:
        return row
    return row | {"error": f"another flow: its viscosity is off by {100 * error:.2g} %, ours by {100 * wanted:.2g} %"}
