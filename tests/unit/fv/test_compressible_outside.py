"""States at the boundaries of compressible flow: what each keeps to round-off, and where one turns into another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.fv.compressible.boundary_states import (
    PARAMETERS,
    DensityState,
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
from fluxloom_lab.exact.riemann import RiemannProblem
from tests.unit.fv.boundary_kernel import boundary_states

Array = np.ndarray
GAMMA = 1.4
G = 0.5 * (GAMMA - 1.0)
STATES = (
    SlipState(), NoSlipState(), IsothermalState(), FarFieldState(), GivenState(), InsideState(), ReservoirState(),
    DensityState(), TemperatureState(), MassFlowState(), OutletState(),
)  # fmt: skip
KINDS = range(len(STATES))
SLIP_WALL, NO_SLIP_WALL, ISOTHERMAL_WALL, FAR_FIELD, GIVEN_STATE, INSIDE_STATE = KINDS[:6]
TOTAL_INLET, DENSITY_INLET, TEMPERATURE_INLET, MASS_INLET, PRESSURE_OUTLET = KINDS[6:]
EITHER = pytest.mark.parametrize("d", [2, 3])
DEVICES = [
    "reference",
    "cpu",
    pytest.param("opencl", marks=pytest.mark.opencl),
    pytest.param("cuda", marks=pytest.mark.cuda),
]


def computed(
    kind: Any, par: Array, n: Array, w: Array, device: str = "cpu", slope: Array | None = None,
    share: Array | None = None, arm: Array | None = None,
) -> Array:  # fmt: skip
    """Return the states ``(m, nv)`` at faces with states ``(m, nv)`` of the cells behind them."""
    (count, nv), d = w.shape, n.shape[1]
    choices: dict[str, Any] = {"threads": 1} if device == "cpu" else {}
    context = fl.Context(device, tuning=False, **choices)
    faces = context.set(count, "faces")
    behind = context.map(faces, faces, np.arange(count)[:, None], "behind")[0]
    kinds = context.dat(faces, np.broadcast_to(np.asarray(kind, dtype=np.int32), (count,)).copy())
    given, normal, inside = (context.dat(faces, np.ascontiguousarray(v)) for v in (par, n, w))
    reach = context.dat(faces, np.zeros((count, d)) if arm is None else arm)
    slopes = context.dat(faces, np.zeros((count, d * nv)) if slope is None else slope)
    shares = context.dat(faces, np.ones((count, nv)) if share is None else share)
    out = context.dat(faces, shape=(nv,))
    fl.Loop(
        boundary_states, faces, kinds, given, normal, reach, inside[behind], slopes[behind], shares[behind], out,
        gamma=GAMMA, states=STATES, d=d, nv=nv, linear=int(slope is not None),
    )()  # fmt: skip
    return out.read()


def normals(count: int, d: int, seed: int = 9) -> Array:
    n = np.random.default_rng(seed).standard_normal((count, d))
    return n / np.linalg.norm(n, axis=1)[:, None]


def states(n: Array, mach: Any, seed: int = 0) -> Array:
    """Return states with Mach numbers ``mach`` along the normals, and some velocity across."""
    rng = np.random.default_rng(seed)
    count, d = n.shape
    w = np.empty((count, d + 2))
    w[:, 0], w[:, -1] = rng.uniform(0.5, 2.0, count), rng.uniform(0.5, 2.0, count)
    across = rng.standard_normal((count, d))
    across -= dot(across, n)[:, None] * n
    w[:, 1:-1] = (mach * sound(w))[:, None] * n + 0.3 * across
    return w


def parameters(first: Any, vector: Any, last: Any, count: int, d: int) -> Array:
    par = np.zeros((count, PARAMETERS))
    par[:, 0], par[:, 1 : 1 + d], par[:, 1 + d], par[:, -1] = first, vector, last, 0.25
    return par


def of_state(w: Array) -> Array:
    return parameters(w[:, 0], w[:, 1:-1], w[:, -1], len(w), w.shape[1] - 2)


def dot(a: Array, b: Array) -> Array:
    return (a * b).sum(axis=1)


def velocity(w: Array, n: Array) -> Array:
    return dot(w[:, 1:-1], n)


def sound(w: Array) -> Array:
    return np.sqrt(GAMMA * w[:, -1] / w[:, 0])


def entropy(w: Array) -> Array:
    return w[:, -1] / w[:, 0] ** GAMMA


def across(w: Array, n: Array) -> Array:
    return w[:, 1:-1] - velocity(w, n)[:, None] * n


def ahead(w: Array, n: Array) -> Array:
    return velocity(w, n) + sound(w) / G


def at_rest(w: Array) -> tuple[Array, Array]:
    """Return pressure and ``R T`` of the gas brought to rest."""
    ratio = 1.0 + G * (w[:, 1:-1] ** 2).sum(axis=1) / sound(w) ** 2
    return w[:, -1] * ratio ** (GAMMA / (GAMMA - 1.0)), w[:, -1] / w[:, 0] * ratio


def flux(w: Array, n: Array) -> Array:
    un = velocity(w, n)
    h = GAMMA / (GAMMA - 1.0) * w[:, -1] / w[:, 0] + 0.5 * (w[:, 1:-1] ** 2).sum(axis=1)
    f = w[:, :1] * un[:, None] * np.column_stack([np.ones(len(w)), w[:, 1:-1], h])
    f[:, 1:-1] += w[:, -1:] * n
    return f


def same(a: Any, b: Any, tolerance: float = 1e-13) -> None:
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


# ------------------------------------------------------------------------------------------ everywhere


def everything(d: int, nv: int = 0, each: int = 60, fastest: float = 2.0) -> tuple[Array, Array, Array, Array]:
    """Return kinds, parameters, normals and states: every kind, in and out, up to a Mach number."""
    kind = np.repeat(np.array(KINDS, dtype=np.int32), each)
    n = normals(kind.size, d)
    rng = np.random.default_rng(4)
    w = states(n, rng.uniform(-fastest, fastest, kind.size))
    par = of_state(states(n, rng.uniform(-fastest, fastest, kind.size), seed=5))
    inlet = kind == TOTAL_INLET
    par[inlet, 1 : 1 + d] = -n[inlet]
    return kind, par, n, np.column_stack([w, rng.uniform(0.0, 1.0, (kind.size, max(nv - d - 2, 0)))])


@EITHER
@pytest.mark.parametrize("device", DEVICES)
def test_devices(device: str, d: int) -> None:
    kind, par, n, w = everything(d, d + 3, each=20)
    rng = np.random.default_rng(6)
    slope, arm = rng.standard_normal((len(w), d * (d + 3))), 0.1 * rng.standard_normal((len(w), d))
    more: dict[str, Any] = {"slope": slope, "share": rng.uniform(0.0, 1.0, w.shape), "arm": arm}
    same(computed(kind, par, n, w, device, **more), computed(kind, par, n, w, "reference", **more), 1e-12)


@EITHER
def test_rotation(d: int) -> None:
    """A turned frame gives turned states."""
    kind, par, n, w = everything(d)
    turn = np.linalg.qr(np.random.default_rng(7).standard_normal((d, d)))[0]
    turned_w, turned_par, want = w.copy(), par.copy(), computed(kind, par, n, w)
    for values, stop in ((turned_w, d + 1), (turned_par, d + 1), (want, d + 1)):
        values[:, 1:stop] = values[:, 1:stop] @ turn.T
    same(computed(kind, turned_par, n @ turn.T, turned_w), want, 1e-12)


@EITHER
def test_units(d: int) -> None:
    """Other units of length, mass and time give the same states."""
    kind, par, n, w = everything(d)
    density, speed = 7.0, 300.0
    factors = np.array([density, *[speed] * d, density * speed**2])
    first = np.full(kind.size, density)
    first[np.isin(kind, (ISOTHERMAL_WALL, TOTAL_INLET, TEMPERATURE_INLET, MASS_INLET))] = speed**2
    middle = np.where(kind == TOTAL_INLET, 1.0, np.where(kind == MASS_INLET, density * speed, speed))
    scaled = par.copy()
    scaled[:, 0] *= first
    scaled[:, 1 : 1 + d] *= middle[:, None]
    scaled[:, 1 + d] *= density * speed**2
    same(computed(kind, scaled, n, w * factors) / factors, computed(kind, par, n, w), 1e-12)


@EITHER
@pytest.mark.parametrize("fastest", [2.0, 20.0])
def test_all_are_admissible(fastest: float, d: int) -> None:
    """Also where the sides flow apart faster than gas expands, which leaves a vacuum."""
    kind, par, n, w = everything(d, each=500, fastest=fastest)
    b = computed(kind, par, n, w)
    assert np.isfinite(b).all()
    assert b[:, [0, -1]].min() > 0.0


@EITHER
@pytest.mark.parametrize("kind", [FAR_FIELD, GIVEN_STATE, TOTAL_INLET, DENSITY_INLET, TEMPERATURE_INLET, MASS_INLET])
def test_uniform_flow_enters(kind: int, d: int) -> None:
    n = normals(40, d)
    w = states(n, np.linspace(-0.95, -0.01, 40))
    speed = np.linalg.norm(w[:, 1:-1], axis=1)
    total, heat = at_rest(w)
    par = of_state(w)
    if kind == TOTAL_INLET:
        subsonic = speed < 0.99 * sound(w)
        n, w, par = n[subsonic], w[subsonic], par[subsonic]
        way = w[:, 1:-1] / speed[subsonic, None]
        par = parameters(heat[subsonic], way, total[subsonic], len(w), d)
    elif kind == TEMPERATURE_INLET:
        par[:, 0] = w[:, -1] / w[:, 0]
    elif kind == MASS_INLET:
        subsonic = speed < 0.99 * sound(w)
        n, w = n[subsonic], w[subsonic]
        par = parameters(heat[subsonic], w[:, :1] * w[:, 1:-1], 0.0, len(w), d)
    assert len(w) > 20
    same(computed(kind, par, n, w), w, 1e-12)


@EITHER
@pytest.mark.parametrize("kind", [FAR_FIELD, INSIDE_STATE, PRESSURE_OUTLET])
def test_uniform_flow_leaves(kind: int, d: int) -> None:
    n = normals(40, d)
    w = states(n, np.linspace(0.01, 3.0, 40))
    same(computed(kind, of_state(w), n, w), w)


# ----------------------------------------------------------------------------------------------- walls


@EITHER
def test_walls(d: int) -> None:
    n = normals(50, d)
    w = states(n, np.linspace(-0.5, 0.5, 50))
    moving = np.random.default_rng(3).standard_normal((50, d))
    par = parameters(0.8, moving, 0.0, 50, d)
    slip = computed(SLIP_WALL, par, n, w)
    same(slip[:, [0, -1]], w[:, [0, -1]])
    same(velocity(slip, n), dot(moving, n))
    same(across(slip, n), across(w, n))
    still = computed(SLIP_WALL, parameters(0.0, 0.0, 0.0, 50, d), n, w)
    same(flux(still, n)[:, [0, -1]], 0.0, 1e-14)
    sticking = computed(NO_SLIP_WALL, par, n, w)
    same(sticking, np.column_stack([w[:, 0], moving, w[:, -1]]))
    same(computed(ISOTHERMAL_WALL, par, n, w), np.column_stack([w[:, -1] / 0.8, moving, w[:, -1]]))


# ------------------------------------------------------------------------------------------- far field


def brought(w: Array, p: Array) -> Array:
    """Return the speed of sound of the gas at another pressure and the same entropy."""
    return np.sqrt(GAMMA * p ** (1.0 - 1.0 / GAMMA) * entropy(w) ** (1.0 / GAMMA))


@EITHER
def test_far_field(d: int) -> None:
    n = normals(1000, d)
    rng = np.random.default_rng(1)
    w, far = (states(n, rng.uniform(-2.0, 2.0, 1000), seed) for seed in (2, 3))
    b = computed(FAR_FIELD, of_state(far), n, w)
    out, p, slow = velocity(b, n) > 0.0, b[:, -1], np.abs(velocity(b, n)) < 0.9999 * sound(b)
    same((velocity(b, n) + brought(w, p) / G)[slow], ahead(w, n)[slow])
    same((velocity(b, n) - brought(far, p) / G)[slow], (velocity(far, n) - sound(far) / G)[slow])
    for some, side, sign in ((out, w, 1.0), (~out, far, -1.0)):
        same(entropy(b)[some], entropy(side)[some])
        same(across(b, n)[some], across(side, n)[some])
        supersonic = ~slow & some & (sign * velocity(side, n) >= sound(side))
        throat = ~slow & some & ~supersonic
        assert min(supersonic.sum(), throat.sum(), (some & slow).sum()) > 20
        same(b[supersonic], side[supersonic])
        same(sign * velocity(b, n)[throat], sound(b)[throat])
        same((sign * velocity(b, n) + sound(b) / G)[throat], (sign * velocity(side, n) + sound(side) / G)[throat])


@EITHER
def test_far_field_is_exact_between_rarefactions(d: int) -> None:
    """What the Riemann problem of both sides has at the face, in fans too, where there is no shock."""
    n = normals(300, d)
    rng = np.random.default_rng(3)
    w = states(n, rng.uniform(-2.5, 2.0, 300), seed=4)
    far = states(n, velocity(w, n) / sound(w) + rng.uniform(0.5, 2.0, 300), seed=5)
    b = computed(FAR_FIELD, of_state(far), n, w)
    checked = fans = 0
    for i in range(300):
        left, right = ((float(s[i, 0]), float(velocity(s, n)[i]), float(s[i, -1])) for s in (w, far))
        problem = RiemannProblem(left, right, GAMMA)
        if problem.pressure < min(left[2], right[2]):
            first, second, _, fourth, last = problem.waves()
            same((b[i, 0], velocity(b, n)[i], b[i, -1]), problem.at(0.0)[0], 1e-9)
            checked, fans = checked + 1, fans + (first < 0.0 < second or fourth < 0.0 < last)
    assert checked > 100
    assert fans > 20


@EITHER
def test_far_field_of_the_same_entropy(d: int) -> None:
    """The usual means of the invariants."""
    n = normals(200, d)
    w, far = states(n, np.linspace(-0.6, 0.6, 200)), states(n, 0.2, seed=3)
    far[:, 0] = (far[:, -1] / entropy(w)) ** (1.0 / GAMMA)
    far[:, 1:-1] = across(w, n) + velocity(far, n)[:, None] * n
    b = computed(FAR_FIELD, of_state(far), n, w)
    plus, minus = ahead(w, n), velocity(far, n) - sound(far) / G
    slow = np.abs(velocity(b, n)) < 0.99 * sound(b)
    assert slow.sum() > 100
    same(velocity(b, n)[slow], 0.5 * (plus + minus)[slow])
    same(sound(b)[slow], 0.5 * G * (plus - minus)[slow])
    same(entropy(b), entropy(w))


@EITHER
def test_wake_passes_a_far_field(d: int) -> None:
    """Hot gas of the pressure and normal velocity outside leaves as it is."""
    n = normals(30, d)
    far = states(n, np.linspace(0.05, 0.5, 30))
    wake = far.copy()
    wake[:, 0] *= 0.3
    wake[:, 1:-1] += across(states(n, 0.0, seed=4), n)
    same(computed(FAR_FIELD, of_state(far), n, wake), wake)


# ----------------------------------------------------------------------------------------------- inlets


@EITHER
def test_totals_of_an_inlet(d: int) -> None:
    """What enters has the given totals and direction, and the wave that leaves its invariant up to the contact."""
    n = normals(200, d)
    w = states(n, np.random.default_rng(1).uniform(-0.8, 0.0, 200))
    way = -n + 0.4 * normals(200, d, seed=3)
    way /= np.linalg.norm(way, axis=1)[:, None]
    total, heat = 1.3 * at_rest(w)[0], np.random.default_rng(2).uniform(0.3, 3.0, 200)
    b = computed(TOTAL_INLET, parameters(heat, way, total, 200, d), n, w)
    found, warm = at_rest(b)
    speed = np.linalg.norm(b[:, 1:-1], axis=1)
    same(found, total)
    same(warm, heat)
    same(b[:, 1:-1], speed[:, None] * way)
    assert speed.min() > 0.1
    subsonic = speed < 0.999 * sound(b)
    assert 20 < subsonic.sum() < 200
    same(speed[~subsonic], sound(b)[~subsonic])
    inner = sound(w) * (b[:, -1] / w[:, -1]) ** (G / GAMMA)
    same((velocity(b, n) + inner / G)[subsonic], ahead(w, n)[subsonic])


@EITHER
def test_inlet_of_the_same_entropy(d: int) -> None:
    """The usual quadratic equation: the invariant of the gas that enters is that of the inside."""
    n = normals(100, d)
    w = states(n, np.linspace(-0.6, 0.1, 100))
    total = 1.4 * w[:, -1]
    heat = total / (total / entropy(w)) ** (1.0 / GAMMA)
    b = computed(TOTAL_INLET, parameters(heat, -n, total, 100, d), n, w)
    rest, plus = np.sqrt(GAMMA * heat), ahead(w, n)
    one, two, three = 1.0 + 1.0 / G, -2.0 * plus, G * plus**2 - rest**2
    a = (-two + np.sqrt(two**2 - 4.0 * one * three)) / (2.0 * one)
    slower = a / G - plus < 0.99 * a
    assert slower.sum() > 50
    same(sound(b)[slower], a[slower])
    same(velocity(b, n)[slower], (plus - a / G)[slower])


def test_hot_gas_of_the_same_pressure_stays_outside() -> None:
    n = normals(20, 2)
    w = states(n, 0.0)
    w[:, 1:-1] = 0.0
    b = computed(TOTAL_INLET, parameters(50.0 * w[:, -1] / w[:, 0], -n, w[:, -1], 20, 2), n, w)
    assert np.abs(b[:, 1:-1]).max() < 1e-13
    same(b[:, -1], w[:, -1])


@EITHER
def test_flow_driven_out_of_an_inlet(d: int) -> None:
    n = normals(30, d)
    w = states(n, np.linspace(0.2, 1.5, 30))
    par = parameters(1.0, -n, 0.9 * w[:, -1], 30, d)
    b = computed(TOTAL_INLET, par, n, w)
    assert velocity(b, n).min() > 0.0
    same(b, computed(PRESSURE_OUTLET, par, n, w))


@EITHER
def test_inlets_of_velocity(d: int) -> None:
    n = normals(30, d)
    w, u = states(n, -0.2), -0.4 * n
    b = computed(DENSITY_INLET, parameters(1.7, u, 0.0, 30, d), n, w)
    same(b, np.column_stack([np.full(30, 1.7), u, w[:, -1]]))
    b = computed(TEMPERATURE_INLET, parameters(0.6, u, 0.0, 30, d), n, w)
    same(b, np.column_stack([w[:, -1] / 0.6, u, w[:, -1]]))


@EITHER
def test_inlet_of_mass(d: int) -> None:
    n = normals(200, d)
    w = states(n, -0.2)
    heat, flow = np.random.default_rng(1).uniform([[0.3], [0.0]], [[2.0], [3.0]], (2, 200))
    flow[0] = 0.0
    b = computed(MASS_INLET, parameters(heat, -flow[:, None] * n, 0.0, 200, d), n, w)
    same(b[:, 0] * velocity(b, n), -flow)
    same(at_rest(b)[1], heat)
    choked = b[:, -1] > w[:, -1]
    assert 10 < choked.sum() < 190
    same(b[~choked, -1], w[~choked, -1])
    same(-velocity(b, n)[choked], sound(b)[choked])
    assert (-velocity(b, n) <= (1.0 + 1e-12) * sound(b)).all()
    assert not b[0, 1:-1].any()


# ---------------------------------------------------------------------------------------------- outlets


@EITHER
def test_outlet(d: int) -> None:
    n = normals(300, d)
    rng = np.random.default_rng(2)
    w = states(n, rng.uniform(0.0, 2.0, 300))
    p = w[:, -1] * rng.uniform(0.1, 1.1, 300)
    b = computed(PRESSURE_OUTLET, parameters(0.0, 0.0, p, 300, d), n, w)
    inside = velocity(w, n) >= sound(w)
    same(b[inside], w[inside])
    out = ~inside & (velocity(b, n) > 0.0)
    slow = out & (velocity(b, n) < 0.999 * sound(b))
    throat = out & ~slow
    for some in (inside, slow, throat):
        assert some.sum() > 20
    assert (b[slow, -1] == p[slow]).all()
    same(velocity(b, n)[throat], sound(b)[throat])
    assert (b[throat, -1] >= (1.0 - 1e-12) * p[throat]).all()
    same(ahead(b, n)[out], ahead(w, n)[out])
    same(entropy(b)[out], entropy(w)[out])
    same(across(b, n)[out], across(w, n)[out])


@EITHER
def test_flow_drawn_back_through_an_outlet(d: int) -> None:
    n = normals(60, d)
    w = states(n, np.linspace(-0.7, 0.0, 60))
    p = 1.2 * w[:, -1]
    b = computed(PRESSURE_OUTLET, parameters(0.0, 0.0, p, 60, d), n, w)
    assert velocity(b, n).max() < 0.0
    same(entropy(b), entropy(w))
    same(across(b, n), across(w, n))
    straight = b.copy()
    straight[:, 1:-1] = velocity(b, n)[:, None] * n
    same(at_rest(straight)[0], p)
    slow = velocity(b, n) > -0.999 * sound(b)
    assert slow.sum() > 20
    same(ahead(b, n)[slow], ahead(w, n)[slow])


@EITHER
@pytest.mark.parametrize(
    ("kind", "ends", "ratio"),
    [(PRESSURE_OUTLET, 0.6, 1.0), (PRESSURE_OUTLET, 1.5, 0.3), (TOTAL_INLET, 0.6, 1.0), (FAR_FIELD, 2.0, 1.0)],
)
def test_fluxes_are_continuous(kind: int, ends: float, ratio: float, d: int) -> None:
    """Between flow in and out, and at the speed of sound, small changes make small changes."""
    count = 40_001
    n = np.tile(normals(1, d), (count, 1))
    w = np.tile(states(n[:1], 0.0), (count, 1))
    w[:, 1:-1] += (np.linspace(-ends, ends, count) * sound(w))[:, None] * n
    other = states(n[:1], 0.1, seed=8)
    way = -n if kind == TOTAL_INLET else other[:, 1:-1]
    last = ratio * w[:, -1] if kind != FAR_FIELD else other[:, -1]
    b = computed(kind, parameters(2.0 if kind == TOTAL_INLET else other[0, 0], way, last, count, d), n, w)
    assert velocity(b, n).min() < 0.0 < velocity(b, n).max()
    assert np.abs(np.diff(flux(b, n), axis=0)).max() < 40.0 * ends / count


# ---------------------------------------------------------------------------- states inside, turbulence


@EITHER
def test_state_inside_is_linear(d: int) -> None:
    n = normals(20, d)
    w = states(n, 0.1)
    rng = np.random.default_rng(1)
    slope, share = 0.1 * rng.standard_normal((20, d * (d + 2))), rng.uniform(0.0, 1.0, (20, d + 2))
    arm = 0.1 * rng.standard_normal((20, d))
    b = computed(INSIDE_STATE, np.zeros((20, PARAMETERS)), n, w, slope=slope, share=share, arm=arm)
    change = np.einsum("ivk,ik->iv", slope.reshape(20, d + 2, d), arm)
    assert np.abs(share * change).max() > 1e-3
    same(b, w + share * change)
    same(computed(INSIDE_STATE, np.zeros((20, PARAMETERS)), n, w, share=share, arm=arm), w)


@EITHER
@pytest.mark.parametrize("bad", [0, -1])
def test_state_of_the_cell_where_the_linear_one_is_none(bad: int, d: int) -> None:
    n = normals(3, d)
    w = states(n, 0.1)
    slope = np.zeros((3, d + 2, d))
    slope[:, 1] = 0.5
    slope[0, bad] = -100.0
    slope[1, bad] = np.nan
    arm = np.full((3, d), 0.1)
    b = computed(INSIDE_STATE, np.zeros((3, PARAMETERS)), n, w, slope=slope.reshape(3, -1), arm=arm)
    same(b[:2], w[:2])
    assert b[2, 1] == pytest.approx(w[2, 1] + 0.05 * d)


@EITHER
def test_turbulence(d: int) -> None:
    kind, par, n, w = everything(d, d + 3)
    b = computed(kind, par, n, w)
    same(b[:, :-1], computed(kind, par, n, w[:, :-1]), 1e-15)
    wall = np.isin(kind, (NO_SLIP_WALL, ISOTHERMAL_WALL))
    enters = (velocity(b[:, :-1], n) < 0.0) & ~np.isin(kind, (SLIP_WALL, INSIDE_STATE)) & ~wall
    assert not b[wall, -1].any()
    assert (b[enters, -1] == 0.25).all()
    assert (b[~enters & ~wall, -1] == w[~enters & ~wall, -1]).all()
    assert enters.sum() > 100
