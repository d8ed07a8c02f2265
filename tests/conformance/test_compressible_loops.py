"""Compressible flow over cells and over faces: one result, on every device and for any number of threads."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.boundary import FarField, NoSlipWall
from fluxloom.fv.compressible.gas import Gas, Sutherland
from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras
from fluxloom.fv.geometry.cell_faces import Rotation
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.gradients.limiters import BarthJespersen
from fluxloom.fv.time_schemes import RK2
from fluxloom.mesh import box2d, box3d
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme, OverFaces
from fluxloom_lab.bench.flows.compressible_domain import LOOPS

LONG = pytest.mark.long
FORMS = [
    pytest.param("cpu", "cells", False, marks=LONG),
    ("cpu", "faces", False),
    ("cpu", "faces", True),
    pytest.param("cpu", "cells", True, marks=LONG),
    *(pytest.param(device, loops, turbulent, marks=[getattr(pytest.mark, device), *marks])
      for device, marks in (("opencl", [LONG]), ("cuda", []))
      for loops in ("cells", "faces") for turbulent in (False, True)),
]  # fmt: skip

Found = dict[str, np.ndarray]


def found(
    device: str, loops: str, turbulent: bool, threads: int = 2, n: int = 3, storage: str = "float64"
) -> Found:  # fmt: skip
    """Return residuals, speeds and states of a flow with a strong front, which is not limited: faces are mended.

    Turbulent with friction, or without both over a mesh that turns.
    """
    context = fl.Context(device, threads=threads, tuning=False)
    mesh = box2d(n + 2, n, perturb=0.2) if turbulent else box3d(n, n, 2, kind="prism", perturb=0.2)
    volumes, d = control_volumes(mesh), mesh.dimension
    stream = np.array([1.0, 0.3, *[0.1] * (d - 1), 1.0])
    sides = {name: FarField(tuple(stream), turbulence=0.02) for name in volumes.patches}
    gas = Gas(constant=1.0, viscosity=Sutherland(0.01, 1.0, 0.5) if turbulent else None)
    model, limiter = (SpalartAllmaras(), BarthJespersen()) if turbulent else (None, None)
    scheme = CompressibleScheme(loops=LOOPS[loops], storage=storage, time=RK2(), turbulence=model, limiter=limiter)
    flow = CompressibleFlow(context, volumes, {**sides, "ymin": NoSlipWall()} if turbulent else sides, gas, scheme,
                            volumes.centres[: volumes.cells, 1] if turbulent else None,
                            rotation=None if turbulent else Rotation((0.1, -0.2, 0.3)))  # fmt: skip
    x = volumes.centres[: volumes.cells]
    states = stream * np.where(x[:, :1] < 0.4, 1.0, [0.02, *[1.0] * d, 0.01]) * (1.0 + 0.1 * x[:, 1:2])
    flow.start(np.column_stack([states, 0.02 + 0.01 * x[:, 0]]) if turbulent else states)
    flow.before()
    cells = slice(0, volumes.cells)
    first = {"residual": flow.res.read()[cells].copy(), "speed": flow.speed.read()[cells].copy()}
    mended = np.array([flow.residuals().clipped_faces])
    flow.iterate()
    return {**first, "mended": mended, "states": flow.states().copy()}


@functools.cache
def reference(turbulent: bool) -> Found:
    """Return what the form over cells leaves where kernels run as Python."""
    return found("reference", "cells", turbulent)


@pytest.mark.parametrize(("device", "loops", "turbulent"), FORMS)
def test_cells_and_faces_agree(device: str, loops: str, turbulent: bool) -> None:
    got, wanted = found(device, loops, turbulent), reference(turbulent)
    assert turbulent or wanted["mended"][0] > 0
    for name, values in wanted.items():
        np.testing.assert_allclose(got[name], values, rtol=0, atol=2e-13 * np.abs(values).max(), err_msg=name)


@pytest.mark.parametrize("turbulent", [False, pytest.param(True, marks=LONG)])
def test_any_threads_leave_the_same_bits(turbulent: bool) -> None:
    one, two = (found("cpu", "faces", turbulent, threads, n=5) for threads in (1, 2))
    for name, values in one.items():
        np.testing.assert_array_equal(two[name], values, err_msg=name)


@pytest.mark.parametrize(("loops", "turbulent"), [("faces", True), pytest.param("cells", False, marks=LONG)])
def test_slopes_in_float32(loops: str, turbulent: bool) -> None:
    """Residuals differ by the round-off of float32, by no more, and not by nothing."""
    got, wanted = found("reference", loops, turbulent, storage="float32"), reference(turbulent)
    for name in ("residual", "states"):
        worst = np.abs(got[name] - wanted[name]).max() / np.abs(wanted[name]).max()
        assert 1e-12 < worst < 1e-6, name


def test_uniform_flow_stays_in_float32() -> None:
    volumes = control_volumes(box3d(2, 1, 1, kind="prism", perturb=0.2))
    stream = np.array([1.2, 0.5, -0.3, 0.2, 0.9])
    sides = dict.fromkeys(volumes.patches, FarField(tuple(stream)))
    for loops in ("cells", "faces"):
        scheme = CompressibleScheme(loops=LOOPS[loops], storage="float32", time=RK2())
        flow = CompressibleFlow(fl.Context("reference"), volumes, sides, scheme=scheme)
        flow.start(stream)
        flow.iterate()
        np.testing.assert_allclose(flow.states(), np.tile(stream, (volumes.cells, 1)), rtol=0, atol=2e-14)


def test_processors_loop_over_faces() -> None:
    volumes = control_volumes(box2d(2, 2))
    sides = {name: FarField([1.0, 0.3, 0.1, 1.0]) for name in volumes.patches}
    assert CompressibleFlow(fl.Context("reference"), volumes, sides).scheme.loops == OverFaces()
    with pytest.raises(SolverError, match=r"loops: a loop of fluxes is wanted .*, not 'faces'; write loops=OverFaces"):
        CompressibleScheme(loops="faces")  # type: ignore[arg-type]
