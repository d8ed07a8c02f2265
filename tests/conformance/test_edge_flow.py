"""Loops of flow on edges: what the reference device finds, on every device and for any number of threads."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.eddy_viscosity import Smagorinsky
from fluxloom.mesh import box2d, box3d
from fluxloom.solvers.edges.boundary import WallLaw
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.edges.scheme import Advective, EdgeScheme, FullStress
from tests.conformance import harness
from tests.conformance.harness import everywhere

SCHEMES = {2: EdgeScheme(), 3: EdgeScheme(convection=Advective(), stress=FullStress(), dynamic=0.5)}


def found(device: str, dimension: int, threads: int = 2) -> dict[str, np.ndarray]:
    """Return what a step's loops make of given values, a pressure that is no solution among them."""
    context = harness.context(device, threads=threads)
    options: dict[str, Any] = {"perturb": 0.2, "kind": "triangle" if dimension == 2 else "tetra"}
    mesh = box2d(5, 4, **options) if dimension == 2 else box3d(3, 3, 2, **options)
    sides: dict[str, Any] = dict.fromkeys(mesh.patches, Symmetry())
    sides |= {"xmin": Inflow([1.0] * dimension), "xmax": Outflow(), "ymin": WallLaw(0.02), "ymax": NoSlip()}
    flow = EdgeFlow(
        point_mesh(context, mesh), lambda x: 0.01 + 0.01 * x[:, 0], sides, force=[0.3] * dimension,
        scheme=SCHEMES[dimension], model=Smagorinsky() if dimension == 3 else None,
    )  # fmt: skip
    loops, x = flow.loops, mesh.points
    values = np.cos(4.0 * x) + x[:, ::-1]
    loops.u.write(values)
    loops.old.write(0.9 * values)
    loops.p.write(np.sin(5.0 * x).sum(axis=1))
    loops.rise.write(np.cos(3.0 * x[:, 0]) * x[:, 1])
    loops.step_length.value = 0.02
    loops.limit()
    loops.momentum()
    loops.fill()
    kept = {name: getattr(loops, name).read().copy() for name in ("hat", "xi", "slope", "load", "b", "diagonal")}
    kept["matrix"] = loops.matrix.values.read().copy()
    reaction = loops.reaction(("ymin", "ymax"))
    loops.survey()
    loops.correction()
    reaction.chain()
    numbers = {name: getattr(loops, name).value for name in ("rate", "worst", "energy", "total")} | {
        "force": reaction.total.value
    }
    return kept | {"u": loops.u.read(), "p": loops.p.read()} | {key: np.array(value) for key, value in numbers.items()}


@functools.cache
def expected(dimension: int) -> dict[str, np.ndarray]:
    return found("reference", dimension)


@pytest.mark.parametrize(("device", "dimension"), everywhere([2, 3], [2, 3], keep=1, keep_items=0))
def test_loops_agree_with_the_reference(device: str, dimension: int) -> None:
    """Both forms of convection and stress, every boundary, a model, the matrix, forces and sums."""
    for threads in (1, 2) if device == "cpu" else (1,):
        for name, values in found(device, dimension, threads).items():
            wanted = expected(dimension)[name]
            assert np.abs(values - wanted).max() <= 1e-11 * max(np.abs(wanted).max(), 1e-3), name
