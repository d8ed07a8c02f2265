"""Boundaries of compressible flow: their tables, what wrong ones are answered with, and uniform flow through a box."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.boundary import (
    BoundaryCondition,
    FarField,
    MassFlowInlet,
    NoSlipWall,
    PressureOutlet,
    SlipWall,
    SupersonicInlet,
    SupersonicOutlet,
    TotalInlet,
    VelocityInlet,
    boundary_table,
)
from fluxloom.fv.compressible.boundary_states import (
    DensityState,
    FaceState,
    FarFieldState,
    GivenState,
    InsideState,
    IsothermalState,
    MassFlowState,
    NoSlipState,
    OutletState,
    ReservoirState,
    SlipState,
    TemperatureState,
)
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.mesh.generate.boxes import box2d, box3d
from tests.unit.fv.boundary_kernel import boundary_states

AIR = Gas(gamma=1.4, constant=287.0)
STREAM = FreeStream(0.5, 1e5, 300.0, (1.0, 0.0))
DENSITY, SPEED = 1e5 / (287.0 * 300.0), 0.5 * np.sqrt(1.4 * 287.0 * 300.0)
TOTAL = TotalInlet(1e5 * 1.05**3.5, 300.0 * 1.05)
EITHER = pytest.mark.parametrize("d", [2, 3])


def square(slanted: bool = False) -> ControlVolumes:
    return control_volumes(box2d(4, 3, perturb=0.2 if slanted else 0.0))


def of_left(boundary: Any, volumes: ControlVolumes | None = None) -> tuple[FaceState, np.ndarray]:
    """Return formula and numbers of the patch on the left, of which the normal is ``(-1, 0)``."""
    cv = square() if volumes is None else volumes
    kinds, par, states, _ = boundary_table(cv, {name: SlipWall() for name in cv.patches} | {"xmin": boundary}, AIR)
    place = slice(cv.patches["xmin"].start - cv.cells, cv.patches["xmin"].stop - cv.cells)
    assert len(set(kinds[place].tolist())) == 1
    assert kinds.size == len(par) == cv.elements - cv.cells
    assert not np.delete(par, np.arange(place.start, place.stop), axis=0).any()
    return states[kinds[place][0]], par[place]


@pytest.mark.parametrize(
    ("boundary", "kind", "row"),
    [
        (SlipWall(), SlipState(), [0, 0, 0, 0, 0, 0]),
        (SlipWall(velocity=(2.0, 3.0)), SlipState(), [0, 2, 3, 0, 0, 0]),
        (NoSlipWall(), NoSlipState(), [0, 0, 0, 0, 0, 0]),
        (NoSlipWall(velocity=(0.0, 3.0)), NoSlipState(), [0, 0, 3, 0, 0, 0]),
        (NoSlipWall(temperature=300.0), IsothermalState(), [287 * 300, 0, 0, 0, 0, 0]),
        (FarField((1.0, 2.0, 3.0, 4.0), turbulence=0.5), FarFieldState(), [1, 2, 3, 4, 0, 0.5]),
        (FarField(STREAM), FarFieldState(), [DENSITY, SPEED, 0, 1e5, 0, 0]),
        (SupersonicInlet((1.0, 2.0, 3.0, 4.0), exact=True), GivenState(), [1, 2, 3, 4, 0, 0]),
        (SupersonicOutlet(), InsideState(), [0, 0, 0, 0, 0, 0]),
        (TotalInlet(2e5, 400.0, turbulence=0.1), ReservoirState(), [287 * 400, 1, 0, 2e5, 0, 0.1]),
        (TotalInlet(2e5, 400.0, direction=(3.0, -4.0)), ReservoirState(), [287 * 400, 0.6, -0.8, 2e5, 0, 0]),
        (VelocityInlet((2.0, 3.0), density=1.5), DensityState(), [1.5, 2, 3, 0, 0, 0]),
        (VelocityInlet((2.0, 3.0), temperature=300.0), TemperatureState(), [287 * 300, 2, 3, 0, 0, 0]),
        (MassFlowInlet(3.0, 300.0), MassFlowState(), [287 * 300, 3, 0, 0, 0, 0]),
        (MassFlowInlet(3.0, 300.0, direction=(3.0, -4.0)), MassFlowState(), [287 * 300, 3, -4, 0, 0, 0]),
        (PressureOutlet(2e5, turbulence=0.2), OutletState(), [0, 0, 0, 2e5, 0, 0.2]),
    ],
)
def test_rows(boundary: BoundaryCondition, kind: FaceState, row: list[float]) -> None:
    found, par = of_left(boundary)
    assert found == kind
    np.testing.assert_allclose(par, np.tile(row, (3, 1)), rtol=1e-14, atol=1e-12)


def test_functions_of_the_place() -> None:
    cv = square()
    y = cv.centres[list(cv.patches["xmin"]), 1]
    assert np.ptp(y) > 0.5
    _, par = of_left(PressureOutlet(lambda x: 1.0 + x[:, 1]))
    assert par[:, 3].tolist() == (1.0 + y).tolist()
    _, par = of_left(NoSlipWall(temperature=lambda x: 1.0 + x[:, 1], velocity=lambda x: 2.0 * x))
    assert par[:, 0].tolist() == (287.0 * (1.0 + y)).tolist()
    assert par[:, 2].tolist() == (2.0 * y).tolist()
    _, par = of_left(SupersonicInlet(lambda x: np.column_stack([1.0 + x[:, 1], x, 2.0 + x[:, 1]]), exact=True))
    assert par[:, 3].tolist() == (2.0 + y).tolist()
    _, par = of_left(VelocityInlet(lambda x: np.column_stack([x[:, 1], 0 * x[:, 1]]), density=1.0))
    assert par[:, 1].tolist() == y.tolist()


@pytest.mark.parametrize(
    ("boundary", "message"),
    [
        (None, r"patch 'xmin' has no boundary: give one of SlipWall, SymmetryPlane, NoSlipWall, .*, not None"),
        (NoSlipWall(temperature=-1.0), "patch 'xmin': temperature: above 0 is wanted, not -1"),
        (NoSlipWall(velocity=(1.0,) * 3), "patch 'xmin': velocity: a vector of 2 components is wanted"),
        (
            FarField((1.0, 2.0, 3.0)),
            "patch 'xmin': state: a FreeStream is wanted, or density, 2 velocities and pressure",
        ),
        (
            FarField((0.0, 2.0, 3.0, 1.0)),
            "patch 'xmin': state: finite numbers, density and pressure above 0, are wanted",
        ),
        (FarField((1.0, np.nan, 3.0, 1.0)), "patch 'xmin': state: nan is not finite"),
        (SupersonicInlet(lambda x: x), r"it has to return \(3, 4\) numbers for the places \(3, 2\)"),
        (FarField(FreeStream(0.5, 1.0, 1.0, (1, 0, 0))), "free stream: direction: 2 numbers are wanted here"),
        (FarField((1.0, 2.0, 3.0, 1.0), -1.0), "patch 'xmin': turbulence: at least 0 is wanted, not -1"),
        (TotalInlet(-1e5, 300.0), "patch 'xmin': pressure: above 0 is wanted, not -100000"),
        (TotalInlet(1e5, 0.0), "patch 'xmin': temperature: above 0 is wanted, not 0"),
        (
            TotalInlet(1e5, 1.0, (-1.0, 0.0)),
            r"patch 'xmin': direction: at 3 of 3 faces \(-1.0, 0.0\) does not lead into",
        ),
        (TotalInlet(1e5, 1.0, (0.0, 1.0)), "patch 'xmin': direction: at 3 of 3 faces"),
        (TotalInlet(1e5, 1.0, (0.0, 0.0)), "patch 'xmin': direction: at 3 of 3 faces"),
        (
            VelocityInlet((-1.0, 0.0), density=1.0),
            r"patch 'xmin': velocity: at 3 of 3 faces \(-1.0, 0.0\) does not lead",
        ),
        (VelocityInlet((1.0, 0.0), density=0.0), "patch 'xmin': density: above 0 is wanted, not 0"),
        (MassFlowInlet(-1.0, 300.0), "patch 'xmin': mass_flux: at least 0 is wanted, not -1"),
        (PressureOutlet(0.0), "patch 'xmin': pressure: above 0 is wanted, not 0"),
        (PressureOutlet(lambda x: x), "patch 'xmin': pressure: the function <lambda>: a number is wanted"),
        (PressureOutlet(np.inf), "patch 'xmin': pressure: inf is not finite"),
    ],
)
def test_wrong_ones(boundary: Any, message: str) -> None:
    with pytest.raises(SolverError, match=message):
        of_left(boundary)


def test_density_or_temperature() -> None:
    for both in ({}, {"density": 1.0, "temperature": 300.0}):
        with pytest.raises(SolverError, match="VelocityInlet: either a density or a temperature is wanted"):
            VelocityInlet((1.0, 0.0), **both)


def test_patches() -> None:
    cv = square()
    with pytest.raises(SolverError, match=r"boundaries: no patch 'xmni'; did you mean 'xmin'\? \(patches: xmin"):
        boundary_table(cv, {"xmni": SlipWall()}, AIR)
    with pytest.raises(SolverError, match="patch 'ymax' has no boundary"):
        boundary_table(cv, {name: SlipWall() for name in ("xmin", "xmax", "ymin")}, AIR)


def after(cv: ControlVolumes, boundaries: dict[str, BoundaryCondition], inside: np.ndarray, device: str) -> np.ndarray:
    """Return the states of all elements with those of the cells, as a solver sets them: in place, on a subset."""
    d, nv = cv.dimension, inside.size
    choices: dict[str, Any] = {"threads": 1} if device == "cpu" else {}
    context = fl.Context(device, tuning=False, **choices)
    elements = context.set(cv.elements, "elements")
    outer = np.arange(cv.cells, cv.elements)
    behind = np.arange(cv.elements)
    behind[outer] = cv.faces[cv.interior :, 0]
    before = context.map(elements, elements, behind[:, None], "behind")[0]

    def padded(values: np.ndarray) -> np.ndarray:
        found = np.zeros((cv.elements, *values.shape[1:]), values.dtype)
        found[outer] = values
        return found

    kinds, par, states, _ = boundary_table(cv, boundaries, AIR)
    w = np.zeros((cv.elements, nv))
    w[: cv.cells] = inside
    state, slope, share = context.dat(elements, w), context.dat(elements, shape=(d * nv,)), context.dat(elements, w)
    fl.Loop(
        boundary_states, context.subset(elements, outer, "boundary"), context.dat(elements, padded(kinds)),
        context.dat(elements, padded(par)), context.dat(elements, padded(cv.normals[cv.interior :])),
        context.dat(elements, padded(cv.arms[cv.interior :])), state[before], slope[before], share[before], state,
        gamma=AIR.gamma, states=states, d=d, nv=nv, linear=0,
    )()  # fmt: skip
    return state.read()


@EITHER
@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_far_field_all_around(device: str, d: int) -> None:
    cv = control_volumes(box2d(4, 3, perturb=0.3, seed=1) if d == 2 else box3d(3, 2, 2, perturb=0.2, seed=1))
    stream = FreeStream.at_angles(0.8, 1e5, 300.0, 3.0, 5.0 if d == 3 else 0.0, dimension=d)
    want = stream.state(AIR, d)
    found = after(cv, {name: FarField(stream) for name in cv.patches}, want, device)
    np.testing.assert_allclose(found, np.tile(want, (cv.elements, 1)), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("turbulent", [False, True])
@pytest.mark.parametrize(
    "inlet",
    [
        TOTAL,
        VelocityInlet((SPEED, 0.0), density=DENSITY, turbulence=0.5),
        VelocityInlet((SPEED, 0.0), temperature=300.0, turbulence=0.5),
        MassFlowInlet(DENSITY * SPEED, 315.0, turbulence=0.5),
        SupersonicInlet(STREAM, turbulence=0.5, exact=True),
        FarField(STREAM, turbulence=0.5),
    ],
)
def test_channel_of_uniform_flow(inlet: BoundaryCondition, turbulent: bool) -> None:
    """All inlets of the same flow, an outlet and planes of symmetry leave it as it is."""
    cv = square()
    inside = np.append(STREAM.state(AIR, 2), [0.1] if turbulent else [])
    symmetry = {"ymin": SlipWall(), "ymax": SlipWall()}
    found = after(cv, {"xmin": inlet, "xmax": PressureOutlet(1e5), **symmetry}, inside, "cpu")
    want = np.tile(inside, (cv.elements, 1))
    if turbulent:
        want[list(cv.patches["xmin"]), -1] = 0.0 if inlet is TOTAL else 0.5
    np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-9)
