"""Newton's and Euler's equations of free bodies, contacts, and rotations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.immersed import Contact, Free, ImmersedBody, Markers, Pose, circle
from fluxloom.lbm.immersed.markers.places import cross
from fluxloom.lbm.immersed.newton import FreeBodies, rotation, state

PLANE = Box((40, 50), (False, True))
SPACE = Box((30, 30, 30), (True,) * 3)


def bodies(box: Box, *motions: Free, places: Any = None, contact: Contact | None = None) -> FreeBodies:
    d = box.dimensions
    places = places if places is not None else [np.full(d, 10.0 + 15 * k) for k in range(len(motions))]
    made = [
        ImmersedBody(f"b{k}", Markers.at(np.asarray(at)[None] + np.eye(d)), Free(**{**vars(m), "centre": tuple(at)}))
        for k, (m, at) in enumerate(zip(motions, places, strict=True))
    ]
    return FreeBodies(box, made, contact)


def none(count: int, d: int) -> np.ndarray:
    """Sums of bodies that meet no fluid."""
    return np.zeros((count, 7 if d == 2 else 16))


def test_rotations_turn_as_spins_do() -> None:
    """A small rotation moves a point by the vector product; a large one in the plane is counter-clockwise."""
    for d, spin in ((2, np.array([1e-7])), (3, np.array([1e-7, -2e-7, 3e-7]))):
        r = np.arange(1.0, d + 1)
        turned = rotation(spin[0] if d == 2 else spin, d) @ r
        assert np.allclose(turned - r, cross(spin, r), atol=1e-12)
    assert np.allclose(rotation(np.pi / 2, 2) @ [0.0, 1.0], [1.0, 0.0])
    assert np.allclose(rotation([np.pi / 2, 0.0, 0.0], 3) @ [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]), "about z: x becomes y"
    row = state(Pose((1.0, 2.0), angle=0.3, velocity=(4.0, 5.0), spin=6.0), 2)
    assert row.size == 9
    assert np.allclose(row[[0, 1, 6, 7, 8]], [1, 2, 4, 5, 6])
    with pytest.raises(SolverError, match="a pose in 3 dimensions"):
        state(Pose((1.0, 2.0)), 3)


def test_free_fall_without_fluid() -> None:
    """Weight less buoyancy; what the fluid inside takes comes back with the acceleration of the step before."""
    g, mass, displaced = np.array([-1e-3, 2e-4]), 30.0, 10.0
    free = bodies(PLANE, Free(mass, displaced, 50.0, gravity=tuple(g), velocity=(0.0, 0.01)))
    a, u, x = np.zeros(2), np.array([0.0, 0.01]), free.centre[0].copy()
    for _ in range(5):
        free.solve(none(1, 2), again=False)
        a = ((mass - displaced) * g + displaced * a) / mass
        u = u + a
        x = x + u - 0.5 * a
        free.advance()
        assert np.allclose(free.velocity[0], u)
        assert np.allclose(free.centre[0], x)


def test_forces_are_found_with_the_velocity_that_they_make() -> None:
    """The solved velocity fulfils ``M dU = -F(U)`` and ``I dw = -T(U, w)``, forces found marker by marker."""
    rng = np.random.default_rng(2)
    for box in (PLANE, SPACE):
        d, t = box.dimensions, 1 if box.dimensions == 2 else 3
        mass, inertia = 7.0, np.array(3.0) if d == 2 else np.diag([3.0, 4.0, 5.0]) + 0.2
        free = bodies(box, Free(mass, 0.0, inertia.tolist(), velocity=tuple(0.1 * np.ones(d)), spin=0.05))
        r, w, u = rng.normal(size=(9, d)), rng.uniform(1, 2, 9), 0.1 * rng.normal(size=(9, d))
        before_u, before_w = free.velocity[0].copy(), free.spin[0].copy()

        def given(velocity: np.ndarray, spin: np.ndarray, r: Any = r, w: Any = w, u: Any = u) -> np.ndarray:
            f = w[:, None] * (velocity + cross(np.broadcast_to(spin, (9, spin.size)), r) - u)
            return np.concatenate([f.sum(axis=0), cross(r, f).sum(axis=0)])

        squares = [(w * r[:, a] * r[:, b]).sum() for a in range(d) for b in range(a, d)]
        moments = [(w * (r**2).sum(axis=1)).sum()] if d == 2 else squares
        sums = np.concatenate([[w.sum()], w @ r, moments, given(before_u, before_w)])
        gyration = np.zeros(1) if d == 2 else cross(before_w, inertia @ before_w)
        free.solve(sums[None], again=False)
        after = given(free.velocity[0], free.spin[0])
        assert np.allclose(mass * (free.velocity[0] - before_u), -after[:d], atol=1e-12)
        change = np.atleast_2d(inertia) @ (free.spin[0] - before_w)
        assert np.allclose(change, -after[d:] - gyration, atol=1e-12)
        assert t == free.spin.shape[1]


def test_a_top_keeps_energy_and_angular_momentum() -> None:
    """Euler's equations without torque: second thoughts of first order in the step, so small spins keep both."""
    inertia = np.array([2.0, 3.0, 5.0])
    drift = []
    for parts in (1, 2):
        free = bodies(SPACE, Free(1.0, 0.0, inertia.tolist(), spin=tuple(np.array([0.02, 0.01, 0.03]) / parts)))
        start = free.spin[0].copy()
        for _ in range(100 * parts):
            free.solve(none(1, 3), again=False)
            free.advance()
        world = free.matrix[0] @ np.diag(inertia) @ free.matrix[0].T
        momentum = world @ free.spin[0]
        assert np.allclose(free.matrix[0] @ free.matrix[0].T, np.eye(3), atol=1e-12)
        drift.append(np.linalg.norm(momentum - inertia * start) / np.linalg.norm(inertia * start))
    assert drift[1] < 0.6 * drift[0] < 0.6 * 0.03


def test_springs_hold_and_locks_keep() -> None:
    spring = Free(5.0, 0.0, 1.0, velocity=(0.1, 0.1), spin=0.2, translates=(False, True), turns=False, stiffness=0.02)
    free = bodies(PLANE, spring)
    places = []
    for _ in range(400):
        free.solve(none(1, 2), again=False)
        free.advance()
        places.append(free.centre[0] - free.start[0])
    assert np.allclose(free.matrix, rotation(0.2 * 400, 2)), "a body that does not turn by torques keeps its spin"
    across = np.array(places)
    assert np.allclose(across[:, 0], 0.1 * np.arange(1, 401)), "no force along a locked axis, its velocity stays"
    swings = np.flatnonzero((across[1:, 1] > 0) & (across[:-1, 1] <= 0))
    assert np.diff(swings).mean() == pytest.approx(2 * np.pi * np.sqrt(5.0 / 0.02), rel=0.02)


def test_contacts_act_equally_and_wrap_round() -> None:
    """Opposite forces along the line of centres; across periodic ends; from sides; none beyond the reach."""
    motion, contact = Free.disk(4.0, 2.0), Contact(strength=0.5, reach=2.0)
    pair = bodies(PLANE, motion, motion, places=[(20.0, 2.0), (20.0, 43.0)], contact=contact)  # 9 apart round the end
    force = pair.contacts()
    assert np.allclose(force, [[0.0, 0.5 * 0.25], [0.0, -0.5 * 0.25]])
    pair.centre[1] = [20.0, 60.0]  # one turn further: at 10, 8 from the other
    assert np.allclose(pair.contacts(), [[0.0, -0.5], [0.0, 0.5]])
    pair.centre[1] = [26.0, 10.0]  # 10 apart: the end of the reach
    assert np.allclose(pair.contacts(), 0.0)
    pair.centre[:] = [[4.5, 10.0], [39.5 - 4.0, 30.0]]  # gaps 1 and 0 to the sides
    assert np.allclose(pair.contacts(), [[0.5 * 0.25, 0.0], [-0.5, 0.0]])
    with pytest.raises(SolverError, match="needs the radius"):
        bodies(PLANE, Free(1.0, 1.0, 1.0), contact=contact)


def test_many_bodies_meet_only_their_neighbours() -> None:
    rng = np.random.default_rng(8)
    places = rng.uniform([6.0, 0.0], [34.0, 50.0], (200, 2))
    many = bodies(PLANE, *[Free.disk(1.5, 2.0)] * 200, places=places, contact=Contact(1.0, 1.0))
    found, wanted = many.contacts(), np.zeros((200, 2))
    for i in range(200):
        apart = places[i] - places
        apart[:, 1] -= 50 * np.round(apart[:, 1] / 50)
        distance = np.hypot(*apart.T)
        near = (distance < 4.0) & (np.arange(200) != i)
        wanted[i] = ((4.0 - distance[near]) ** 2 / distance[near]) @ apart[near]
    assert np.abs(wanted).max() > 1
    assert np.allclose(found, wanted)


def test_what_is_no_motion() -> None:
    with pytest.raises(SolverError, match="mass has to be positive"):
        Free(0.0, 1.0, 1.0)
    with pytest.raises(SolverError, match="reach has to be positive"):
        Contact(1.0, 0.0)
    free = bodies(PLANE, Free.disk(2.0, 1.5))
    with pytest.raises(SolverError, match="body 'b0': its velocity is not finite"):
        free.solve(np.full((1, 7), np.nan), again=False)
    assert circle((0, 0), 2).count == 13


def test_bodies_that_are_too_light_are_refused() -> None:
    body = ImmersedBody("b", circle((9.0, 9.0), 4.0), Free.disk(4.0, 0.05))
    with pytest.raises(SolverError, match=r"'b': it has 0\.05 of the density of the fluid, and from 0\.1 on"):
        FreeBodies(Box((20, 20), (True, True)), [body], None)
