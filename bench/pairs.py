"""Two rows an item or one: products of sliced matrices in turn, and whether the automatic choice is the faster one.

    python bench/pairs.py [--device cuda] [--rounds 9] [--json FILE]

For each matrix and size: microseconds a product with one row an item and with two, medians of rounds in turn, what
`Schedule.auto()` chooses, and whether both results have the same bits. Sizes below the least that auto takes pairs for,
single precision, long rows and residuals show whether the rule (`fluxloom.dsl.pairing.pairs_pay`) is too narrow or too
wide. Ends with 1 where bits differ, or where auto is more than 2 % slower than the other choice.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import fluxloom as fl
from fluxloom.linalg import SparseMatrix
from fluxloom.linalg.generate import lagrange2, laplacian2d, laplacian3d, power_law, tet_dual

MATRICES = {"tet_dual": tet_dual, "laplacian2d": laplacian2d, "laplacian3d": laplacian3d, "lagrange2": lagrange2,
            "power_law": power_law}  # fmt: skip
ENTRIES = (0.5, 1, 2, 4, 8, 20, 60)
"""Millions."""

CALLS, REPLAYS, SLOWER = 50, 10, 1.02
WAYS = {"one": fl.Schedule(pairs=False), "two": fl.Schedule(pairs=True)}


def main() -> int:
    """Measure, print a table, and tell whether auto chose well."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda")
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--entries", default=",".join(str(n) for n in ENTRIES), help="millions, 0.5,8,60")
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    context = fl.Context(asked.device, tuning=False)
    print(context.device.describe())
    print(f"{'matrix':<12} {'type':<8} {'rows':>10} {'one us':>9} {'two us':>9} one/two  auto  bits")
    rows = [
        row
        for name, make in MATRICES.items()
        for millions in asked.entries.split(",")
        for row in matrix_rows(context, name, make(round(1e6 * float(millions)), 1), asked.rounds)
    ]
    if asked.json:
        asked.json.write_text(json.dumps({"device": context.device.describe(), "rows": rows}, indent=1))
    wrong = [row for row in rows if not row["same_bits"] or row["auto_over_best"] > SLOWER]
    limit = 100 * SLOWER - 100
    print(f"{len(wrong)} of {len(rows)} rows: other bits, or auto more than {limit:.0f} % slower than the best")
    return 1 if wrong else 0


def matrix_rows(context: fl.Context, name: str, matrix: Any, rounds: int) -> list[dict[str, Any]]:
    """Measure one matrix in both precisions."""
    found = []
    for dtype in ("float64", "float32"):
        ours = SparseMatrix.from_scipy(context, matrix, dtype=dtype, layout=fl.SlicedELL(32))
        x = context.dat(ours.columns, np.random.default_rng(2).random(matrix.shape[1]), dtype=dtype)
        out = {way: context.dat(ours.rows, dtype=dtype) for way in WAYS}
        loops = {way: ours.product(x, out[way], schedule) for way, schedule in WAYS.items()}
        chosen = "two" if ours.product(x, out["one"]).schedule.pairs else "one"
        steps = {way: fl.Chain([loop] * CALLS, fuse=False) for way, loop in loops.items()}
        times = measure(context, steps, rounds)
        bits = out["one"].read().tobytes() == out["two"].read().tobytes()
        found.append({
            "matrix": name, "dtype": dtype, "rows": matrix.shape[0], "entries": matrix.nnz, "padding": ours.padding,
            "longest": int(np.diff(matrix.indptr).max()), **{f"{way}_us": 1e6 * s for way, s in times.items()},
            "auto": chosen, "auto_over_best": times[chosen] / min(times.values()), "same_bits": bits,
        })  # fmt: skip
        one, two = (1e6 * times[way] for way in WAYS)
        print(f"{name:<12} {dtype:<8} {matrix.shape[0]:>10} {one:9.2f} {two:9.2f} {one / two:7.3f}  {chosen:<4}  "
              f"{'same' if bits else 'DIFFER'}", flush=True)  # fmt: skip
    return found


def measure(context: fl.Context, steps: dict[str, fl.Chain], rounds: int) -> dict[str, float]:
    """Return the median seconds of a call of each loop; they take turns."""
    times: dict[str, list[float]] = {way: [] for way in steps}
    for round_ in range(rounds + 1):
        for way, step in steps.items():
            step()
            context.device.synchronize()
            begin = time.perf_counter()
            for _ in range(REPLAYS):
                step()
            context.device.synchronize()
            if round_:  # the first compiles
                times[way].append((time.perf_counter() - begin) / (CALLS * REPLAYS))
    return {way: statistics.median(found) for way, found in times.items()}


if __name__ == "__main__":
    sys.exit(main())
