"""What runs in the interpreter that has lbmpy: a shear wave in a periodic box, in every way lbmpy can make the kernel.

Started by `fluxloom_lab.peers.lbm_peers` as a program of its own and never imported: its only packages are lbmpy,
pystencils and NumPy, and CuPy on a GPU. The case comes as JSON in the first argument; a line
``fluxloom: {"way": ..., "seconds": [...], ...}`` goes to standard output for each way.
"""

import json
import sys
import time
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np


def ways(case: dict[str, Any]) -> dict[str, Any]:
    """Return how the kernel can be made, by name: settings of pystencils.

    Two more are options of pystencils 2.1 and lbmpy 2.1 that do nothing: stores past the caches are not generated, and
    splitting the inner loop is refused.
    """
    if case["device"] == "gpu":
        blocks = {"block 256": (256, 1, 1), "block 128": (128, 1, 1), "block 64 x 4": (64, 4, 1)}
        return {name: _on_gpu(case, block) for name, block in blocks.items()}
    return {"plain": _on_cpu(case, vectors=False), "vectors": _on_cpu(case, vectors=True)}


def _on_gpu(case: dict[str, Any], block: tuple[int, int, int]) -> Any:
    ps = import_module("pystencils")
    config = ps.CreateKernelConfig(target=ps.Target.CUDA, default_dtype=case["precision"])
    config.gpu.default_block_size = block
    return config


def _on_cpu(case: dict[str, Any], *, vectors: bool) -> Any:
    ps = import_module("pystencils")
    config = ps.CreateKernelConfig(target=ps.Target.CurrentCPU, default_dtype=case["precision"])
    config.cpu.openmp.enable = True
    config.cpu.openmp.num_threads = case["threads"]
    config.cpu.vectorize.enable = vectors
    config.cpu.vectorize.assume_inner_stride_one = vectors
    return config


def build(case: dict[str, Any], config: Any) -> Any:
    """Return the flow: SRT with the compressible equilibrium, less the weights, one fused pull kernel a step."""
    lbmpy, steps = import_module("lbmpy"), import_module("lbmpy.lbstep")
    stencil = lbmpy.LBStencil(getattr(lbmpy.Stencil, case["lattice"]))
    method = lbmpy.LBMConfig(
        stencil=stencil, method=lbmpy.Method.SRT, relaxation_rate=case["omega"], compressible=True, zero_centered=True
    )
    flow = steps.LatticeBoltzmannStep(
        domain_size=tuple(case["shape"]), periodicity=True, lbm_config=method, config=config,
        lbm_optimisation=lbmpy.LBMOptimisation(cse_global=True),
    )  # fmt: skip
    n = case["shape"][1]
    wave = case["speed"] * np.sin(2.0 * np.pi * np.arange(n) / n)
    inside(flow, flow.velocity_data_name)[..., 0] = wave.reshape((1, n) + (1,) * (stencil.D - 2))
    flow.set_pdf_fields_from_macroscopic_values()
    return flow


def inside(flow: Any, name: str) -> Any:
    """Return the values of the cells of the box, x first, without the layer around it."""
    values = flow.data_handling.cpu_arrays[name]
    return values[(slice(1, -1),) * flow.data_handling.dim]


def energy(flow: Any) -> float:
    """Return the sum of ``rho u^2 / 2``."""
    flow.post_run()
    u = np.asarray(inside(flow, flow.velocity_data_name), dtype=np.float64)
    rho = np.asarray(inside(flow, flow.density_data_name), dtype=np.float64).reshape(u.shape[:-1])
    return float(0.5 * (rho * np.sum(u * u, axis=-1)).sum())


def measure(case: dict[str, Any], config: Any) -> dict[str, Any]:
    """Return the seconds of each round, of the steps with their copies of the sides and of the kernel alone."""
    flow, pairs = build(case, config), (case["steps"] + 1) // 2
    loop = flow.get_time_loop()
    calls = loop._call_data  # of two steps, with fixed arguments, as its `run` makes them
    wait = import_module("cupy").cuda.runtime.deviceSynchronize if case["device"] == "gpu" else lambda: None
    kernels = [call for call in calls if call[0] is flow._lbmKernels[0]]

    def timed(calls: Any) -> float:
        wait()
        start = time.perf_counter()
        for _ in range(pairs):
            for function, arguments in calls:
                function(**arguments)
        wait()
        return time.perf_counter() - start

    timed(calls)
    first = energy(flow)
    whole = [timed(calls) for _ in range(case["rounds"])]
    after = energy(flow)
    alone = [timed(kernels) for _ in range(case["rounds"])]
    return {"seconds": whole, "kernel_seconds": alone, "energies": [first, after], "round_steps": 2 * pairs}


def main(case: dict[str, Any]) -> None:
    """Measure each way."""
    about = {"version": f"lbmpy {version('lbmpy')}, pystencils {version('pystencils')}", "threads": case["threads"]}
    for name, config in ways(case).items():
        try:
            row = measure(case, config)
        except Exception as error:  # one way that this machine or version cannot do leaves the others
            row = {"error": f"{type(error).__name__}: {error}"[:300]}
        print("fluxloom:", json.dumps({"way": name, **about, **row}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
