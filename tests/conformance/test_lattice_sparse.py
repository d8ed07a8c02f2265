"""Lists of fluid cells give the numbers of the whole box: schemes of streaming, conditions, devices, precisions."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.lbm.boundaries import Body, Outflow, Pressure, RegularisedCells, Slip, Velocity, Wall, ZouHe
from fluxloom.lbm.collisions.operators import TRT
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27, Lattice
from fluxloom.lbm.shapes.sets import Union
from fluxloom.lbm.shapes.shapes import Circle, Sphere
from tests.lattice_names import lattice_flow

SCHEMES = ("pull", "push", "three-phase", "in-place")


def but(quick: str) -> list[Any]:
    """Return all schemes of streaming, of which one is quick enough to be tried always."""
    return [scheme if scheme == quick else pytest.param(scheme, marks=pytest.mark.long) for scheme in SCHEMES]


PLANE, SPACE = (14, 17), (7, 8, 11)
"""Shapes of the boxes."""

PACK = Union(Circle((2.2, 3.1), 3.4), Circle((8.9, 8.2), 3.3), Circle((4.1, 13.7), 2.9), Circle((12.5, 14.8), 3.1))
DISKS = Union(Circle((3.2, 6.1), 2.4), Circle((9.6, 9.4), 2.7), Circle((12.8, 4.7), 1.9))
BED = Union(Sphere((1.2, 2.3, 5.2), 2.2), Sphere((5.1, 5.8, 4.6), 2.4), Sphere((6.8, 0.4, 5.9), 1.7))


def periodic() -> dict[str, Any]:
    """Return disks that cover about half of a box without sides, in a force."""
    return {"lattice": D2Q9, "force": (0.0, 1e-4), "bodies": [Body("pack", PACK)]}


def channel() -> dict[str, Any]:
    """Return disks between an inlet and an outflow, with curved walls, a wall that moves and a plane of symmetry."""
    return {
        "lattice": D2Q9,
        "boundaries": {
            "xmin": Velocity((0.0, 0.03)), "xmax": Outflow(), "ymin": Slip(), "ymax": Wall(velocity=(0.0, 0.02)),
        },
        "bodies": [Body("pack", DISKS, Wall(interpolated=True, measure=True))],
    }  # fmt: skip


def bed() -> dict[str, Any]:
    """Return spheres between an inlet and an outflow, with walls of all kinds."""
    return {
        "lattice": D3Q19,
        "boundaries": {
            "xmin": Velocity((0.0, 0.0, 0.03)), "xmax": Outflow(), "ymin": Wall(measure=True),
            "ymax": Wall(velocity=(0.0, 0.0, 0.02)), "zmin": Slip(), "zmax": Slip(),
        },
        "bodies": [Body("pack", BED, Wall(interpolated=True, measure=True))],
    }  # fmt: skip


def pressures(lattice: Lattice = D3Q19) -> dict[str, Any]:
    """Return spheres in a box that is joined along y and z, with two kinds of pressure along x."""
    return {
        "lattice": lattice,
        "boundaries": {"xmin": Pressure(1.01), "xmax": Pressure(1.0, scheme=ZouHe())},
        "bodies": [Body("pack", BED)],
    }


def edges() -> dict[str, Any]:
    """Return a disk in a plane whose sides all set velocity or pressure, so that their corners have conditions."""
    stream = Velocity((0.0, 0.03))
    return {
        "lattice": D2Q9,
        "boundaries": {"xmin": stream, "xmax": Pressure(1.0, RegularisedCells()), "ymin": stream, "ymax": stream},
        "bodies": [Body("pack", Circle((6.4, 7.2), 2.8))],
    }


FLOWS = {"periodic": periodic, "channel": channel, "bed": bed, "pressures": pressures, "edges": edges}


def values(
    context: fl.Context, name: str, cells: str, streaming: str = "pull", dtype: str = "float64", steps: int = 5,
    layout: Any = None,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Return what some steps from a random start leave."""
    options = FLOWS[name]()
    shape = PLANE if options["lattice"].dimensions == 2 else SPACE
    flow = lattice_flow(
        context, shape, viscosity=0.05, collision=TRT(), dtype=dtype, streaming=streaming, cells=cells, layout=layout,
        **options,
    )  # fmt: skip
    rng = np.random.default_rng(3)
    flow.initialise(1 + 0.01 * rng.random(shape), 0.01 * rng.standard_normal((*shape, len(shape))))
    flow.step(steps)
    found = {"density": flow.density(), "velocity": flow.velocity(), "totals": np.array(flow.totals())}
    if context.device.name != "reference":
        found["force"] = flow.force_on("pack")
    assert np.abs(found["velocity"]).max() > 1e-3
    return found


@functools.cache
def whole(name: str, dtype: str = "float64", steps: int = 5) -> dict[str, np.ndarray]:
    """Return the values of a flow all of whose cells are stored."""
    return values(fl.Context("cpu", threads=1, tuning=False), name, "all", dtype=dtype, steps=steps)


def check(found: dict[str, np.ndarray], want: dict[str, np.ndarray], atol: float = 1e-13) -> None:
    for key, value in found.items():
        np.testing.assert_allclose(value, want[key], rtol=0, atol=atol * (100 if key == "totals" else 1), err_msg=key)


@pytest.mark.parametrize("streaming", but("push"))
def test_schemes(streaming: str) -> None:
    """Every scheme of streaming, an odd number of steps."""
    check(values(fl.Context("cpu", threads=2, tuning=False), "periodic", "fluid", streaming), whole("periodic"))


@pytest.mark.parametrize(
    ("name", "streaming"),
    [
        pytest.param(name, streaming, marks=() if (name, streaming) == ("channel", "in-place") else pytest.mark.long)
        for name in ("channel", "bed", "pressures", "edges")
        for streaming in SCHEMES
    ],
)  # fmt: skip
def test_conditions(name: str, streaming: str) -> None:
    """Inlets, outlets, walls that are curved, move or are measured, corners: they know nothing of lists."""
    check(values(fl.Context("cpu", threads=1, tuning=False), name, "fluid", streaming), whole(name))


@pytest.mark.parametrize("streaming", ["push", pytest.param("in-place", marks=pytest.mark.long)])
def test_reference(streaming: str) -> None:
    """The device that runs kernels as Python."""
    check(values(fl.Context("reference"), "periodic", "fluid", streaming, steps=1), whole("periodic", steps=1))


@pytest.mark.opencl
@pytest.mark.long
@pytest.mark.parametrize("streaming", SCHEMES)
def test_opencl(streaming: str) -> None:
    check(values(fl.Context("opencl"), "periodic", "fluid", streaming), whole("periodic"))


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["periodic", "channel"])
@pytest.mark.parametrize("streaming", SCHEMES)
def test_cuda(name: str, streaming: str) -> None:
    check(values(fl.Context("cuda"), name, "fluid", streaming), whole(name))


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "atol"), [("float32", 2e-6), ("float16", 5e-4)])
@pytest.mark.parametrize("layout", [fl.AoS(), fl.SoA(), fl.Blocked(8)])
def test_storage(dtype: str, atol: float, layout: Any) -> None:
    """Layouts and precisions of the populations."""
    found = values(fl.Context("cpu", threads=1, tuning=False), "periodic", "fluid", "in-place", dtype, layout=layout)
    check(found, whole("periodic"), atol)


@pytest.mark.long
def test_three_dimensions_27() -> None:
    """D3Q27: a cell meets a wall along diagonals of the cube too."""
    context = fl.Context("cpu", threads=1, tuning=False)
    flows = [
        lattice_flow(context, SPACE, viscosity=0.05, dtype="float64", cells=cells, **pressures(D3Q27))
        for cells in ("all", "fluid")
    ]
    for flow in flows:
        flow.initialise()
        flow.step(4)
    np.testing.assert_allclose(flows[1].velocity(), flows[0].velocity(), rtol=0, atol=1e-13)
