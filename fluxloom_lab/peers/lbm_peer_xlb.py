"""What runs in the interpreter that has XLB: a shear wave in a periodic box, on one of its backends.

Started by `fluxloom_lab.peers.lbm_peers` as a program of its own and never imported: its only packages are XLB, JAX,
Warp and NumPy. The case comes as JSON in the first argument; a line ``fluxloom: {"way": ..., "seconds": [...], ...}``
goes to standard output for each backend.
"""

import json
import os
import sys
import time
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

_POLICIES = {"float64": "FP64FP64", "float32": "FP32FP32", "float16": "FP32FP16"}
"""Arithmetic and storage; half precision is of storage alone, as ours."""


def keep_to(threads: int) -> int:
    """Keep this process on so many processors, as JAX takes all that it may use; return how many they are."""
    allowed = sorted(os.sched_getaffinity(0))[:threads]
    os.sched_setaffinity(0, allowed)
    return len(allowed)


class Flow:
    """A shear wave, stepped by XLB's `IncompressibleNavierStokesStepper` with BGK."""

    def __init__(self, case: dict[str, Any], backend: str) -> None:
        xlb, jax = import_module("xlb"), import_module("jax")
        jax.config.update("jax_enable_x64", case["precision"] == "float64")
        self.backend = getattr(xlb.ComputeBackend, backend.upper())
        policy = getattr(xlb.PrecisionPolicy, _POLICIES[case["precision"]])
        velocities = getattr(xlb.velocity_set, case["lattice"])(precision_policy=policy, compute_backend=self.backend)
        xlb.init(velocity_set=velocities, default_backend=self.backend, default_precision_policy=policy)
        if backend == "warp":
            self.warp = import_module("warp")
            self.warp.set_device("cuda" if case["device"] == "gpu" else "cpu")
        self.lattice, self.omega, self.steps = velocities, case["omega"], 0
        self.grid = xlb.grid.grid_factory(tuple(case["shape"]), compute_backend=self.backend)
        stepper = import_module("xlb.operator.stepper")
        self.stepper = stepper.IncompressibleNavierStokesStepper(grid=self.grid, boundary_conditions=[])
        self.macroscopic = import_module("xlb.operator.macroscopic").Macroscopic()
        self.f, self.next, self.conditions, self.missing = self.stepper.prepare_fields(
            lambda grid, *about: self._start(xlb, case, grid, policy)
        )

    def _start(self, xlb: Any, case: dict[str, Any], grid: Any, policy: Any) -> Any:
        """Return populations in equilibrium with the velocity of the wave."""
        n = case["shape"][1]
        shape = tuple(case["shape"]) + (1,) * (self.backend == xlb.ComputeBackend.WARP and len(case["shape"]) == 2)
        u = np.zeros((self.lattice.d, *shape))
        wave = case["speed"] * np.sin(2.0 * np.pi * np.arange(n) / n)
        u[0] = wave.reshape((1, n) + (1,) * (len(shape) - 2))
        rho = grid.create_field(cardinality=1, fill_value=1.0, dtype=policy.compute_precision)
        equilibrium = xlb.operator.equilibrium.QuadraticEquilibrium()
        if self.backend == xlb.ComputeBackend.WARP:
            speeds = self.warp.array(u, dtype=policy.compute_precision.wp_dtype)
            return equilibrium(rho, speeds, grid.create_field(cardinality=self.lattice.q, dtype=policy.store_precision))
        jax = import_module("jax")
        speeds = jax.numpy.asarray(u, dtype=policy.compute_precision.jax_dtype)
        return policy.cast_to_store_jax(equilibrium(rho, speeds))

    def step(self) -> None:
        """Advance by a step, as XLB's examples do."""
        self.f, self.next = self.stepper(self.f, self.next, self.conditions, self.missing, self.omega, self.steps)
        self.f, self.next = self.next, self.f
        self.steps += 1

    def wait(self) -> None:
        """Wait until everything is done."""
        if hasattr(self, "warp"):
            self.warp.synchronize()
        else:
            self.f.block_until_ready()

    def energy(self) -> float:
        """Return the sum of ``rho u^2 / 2``."""
        f = np.asarray(self.f.numpy() if hasattr(self, "warp") else self.f, dtype=np.float64)
        c = np.asarray(self.lattice._c, dtype=np.float64)
        rho = f.sum(axis=0)
        momentum = np.tensordot(c, f, axes=(1, 0))
        return float((0.5 * np.sum(momentum**2, axis=0) / rho).sum())


def measure(case: dict[str, Any], backend: str) -> dict[str, Any]:
    """Return the seconds of each round."""
    flow = Flow(case, backend)

    def timed() -> float:
        flow.wait()
        start = time.perf_counter()
        for _ in range(case["steps"]):
            flow.step()
        flow.wait()
        return time.perf_counter() - start

    timed()
    first = flow.energy()
    seconds = [timed() for _ in range(case["rounds"])]
    return {
        "seconds": seconds,
        "kernel_seconds": None,
        "energies": [first, flow.energy()],
        "round_steps": case["steps"],
    }


def main(case: dict[str, Any]) -> None:
    """Measure one backend: two of them in one process would share settings."""
    backend = case["backend"]
    threads = keep_to(case["threads"]) if case["device"] == "cpu" else 0
    if case["device"] == "cpu" and backend == "warp":
        threads = 1  # Warp runs kernels on a processor with one thread
    library = "jax" if backend == "jax" else "warp-lang"
    about = {"version": f"XLB {version('xlb')}, {library} {version(library)}", "threads": threads}
    try:
        row = measure(case, backend)
    except Exception as error:  # what this machine or version cannot do leaves the others
        row = {"error": f"{type(error).__name__}: {error}"[:300]}
    print("fluxloom:", json.dumps({"way": backend, **about, **row}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
