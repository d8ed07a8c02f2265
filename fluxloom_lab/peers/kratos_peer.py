"""What runs in the interpreter that has Kratos Multiphysics: the steps of the case in this folder, and its result.

Started by `fluxloom_lab.peers.kratos` as a program of its own and never imported: its only packages are Kratos and
NumPy. Standard output gets a line before and after each step, among what Kratos itself says; ``result.npz`` gets the
velocity, pressure and reaction of the points at the end, in the order of their numbers.
"""

import ctypes
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

_LINES = 1
"""``_IOLBF`` of ``stdio.h``."""


def main(steps: int, part: str) -> None:
    """Make so many steps of ``parameters.json``, a ``FluidDynamicsAnalysis``, as its ``RunSolutionLoop`` does."""
    _flush_lines()
    kratos = import_module("KratosMultiphysics")
    import_module("KratosMultiphysics.FluidDynamicsApplication")
    analysis = import_module("KratosMultiphysics.FluidDynamicsApplication.fluid_dynamics_analysis")
    print(f"fluxloom: threads {kratos.ParallelUtilities.GetNumThreads()}", flush=True)
    print(f"fluxloom: version {kratos.Kernel.Version()}", flush=True)
    model = kratos.Model()
    settings = kratos.Parameters(Path("parameters.json").read_text(encoding="ascii"))
    stage = analysis.FluidDynamicsAnalysis(model, settings)
    stage.Initialize()
    solver = stage._GetSolver()
    for _ in range(steps):
        print("fluxloom: step", flush=True)
        start, busy = time.perf_counter(), time.process_time()
        stage.time = stage._AdvanceTime()
        stage.InitializeSolutionStep()
        stage.SolveSolutionStep()
        stage.FinalizeSolutionStep()
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        count = solver._GetLinearSolver()[0].GetIterationsNumber()
        print(f"fluxloom: done {seconds!r} {busy!r} {count}", flush=True)
    _write(kratos, solver, model.GetModelPart(part))


def _flush_lines() -> None:
    """Make what Kratos prints leave line by line, as the reader looks at the clock when it comes.

    Its messages go through the standard output of C, which keeps them back where that is no terminal.
    """
    library = ctypes.CDLL(None)
    name = "stdout" if hasattr(library, "stdout") else "__stdoutp"
    if library.setvbuf(ctypes.c_void_p.in_dll(library, name), None, _LINES, 0):
        raise OSError("the standard output cannot be flushed line by line")


def _write(kratos: Any, solver: Any, part: Any) -> None:
    """Write the result; reactions are computed now, as no step needs them."""
    solver._GetSolutionStrategy().CalculateReactions()
    points = sorted(part.Nodes, key=lambda point: point.Id)
    np.savez(
        "result.npz",
        velocity=np.array([list(point.GetSolutionStepValue(kratos.VELOCITY)) for point in points]),
        pressure=np.array([point.GetSolutionStepValue(kratos.PRESSURE) for point in points]),
        reaction=np.array([list(point.GetSolutionStepValue(kratos.REACTION)) for point in points]),
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
