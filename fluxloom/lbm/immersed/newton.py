"""Newton's and Euler's equations of rigid bodies, many at once, on the host.

Components are the slowest axis first. The sign of vector products is that of
`fluxloom.lbm.immersed.markers.places.cross`, so that spins and torques are right-handed in ``x, y, z``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation

from fluxloom.core.errors import Divergence, SolverError
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.immersed.markers.places import cross
from fluxloom.lbm.immersed.motion import Contact, Free, ImmersedBody, Pose
from fluxloom.lbm.lattices import SOUND_SPEED_SQUARED

__all__ = ["FreeBodies", "rotation", "state"]

Values = npt.NDArray[np.float64]

_KEPT = ("centre", "velocity", "spin", "acceleration", "twist", "matrix", "inner", "inner_twist")
"""What is known of free bodies from one step to the next."""

_LIGHTEST = 0.1
"""Density, that of the fluid being one, down to which bodies were tried and lived."""


def rotation(angle: npt.ArrayLike, dimensions: int) -> Values:
    """Return rotation matrices ``R``: of angles ``(...)`` in the plane, of rotation vectors ``(..., 3)`` in space.

    In the plane ``(y, x) -> (y cos t + x sin t, x cos t - y sin t)``.
    """
    angles = np.asarray(angle, dtype=np.float64)
    if dimensions == 2:
        c, s = np.cos(angles), np.sin(angles)
        return np.stack([np.stack([c, s], axis=-1), np.stack([-s, c], axis=-1)], axis=-2)
    vector = np.broadcast_to(angles, (*angles.shape[:-1], 3)) if angles.ndim else np.zeros(3)
    return Rotation.from_rotvec(-vector).as_matrix()  # axes turned round are left-handed


def state(pose: Pose, dimensions: int) -> Values:
    """Return the row of a body: centre, rotation matrix, velocity, spin.

    Raises
    ------
    SolverError
        If the pose does not fit the dimensions, or is not finite.
    """
    turns = 1 if dimensions == 2 else 3
    velocity = pose.velocity if len(pose.velocity) else (0.0,) * dimensions
    spin = np.asarray(pose.spin, dtype=np.float64).reshape(-1)
    parts = [
        np.asarray(pose.centre, dtype=np.float64), rotation(pose.angle, dimensions).ravel(),
        np.asarray(velocity, dtype=np.float64), np.zeros(turns) if not spin.any() else spin,
    ]  # fmt: skip
    sizes = [part.size for part in parts]
    if sizes != [dimensions, dimensions**2, dimensions, turns] or not all(np.isfinite(p).all() for p in parts):
        raise SolverError(f"a pose in {dimensions} dimensions was wanted, of finite numbers, not {pose}")
    return np.concatenate(parts)


def _rows(values: Sequence[object], width: int) -> Values:
    """Return one row a body; numbers stand for all components, nothing for zeros."""
    return np.array([np.broadcast_to(np.asarray(v if np.size(v) else 0.0, np.float64), (width,)) for v in values])  # type: ignore[arg-type]


def _answers(sums: Values, d: int) -> Values:
    """Return how force and torque on the fluid change with velocity and spin, ``(n, d + t, d + t)``."""
    t = 1 if d == 2 else 3
    found = np.zeros((len(sums), d + t, d + t))
    found[:, :d, :d] = sums[:, 0, None, None] * np.eye(d)
    arms = np.stack([cross(unit, sums[:, 1 : 1 + d]) for unit in (np.eye(3) if d == 3 else np.ones((1, 1)))], axis=2)
    found[:, :d, d:], found[:, d:, :d] = arms, arms.transpose(0, 2, 1)
    if d == 2:
        found[:, 2, 2] = sums[:, 3]
        return found
    squares = sums[:, (4, 5, 6, 5, 7, 8, 6, 8, 9)].reshape(-1, 3, 3)
    found[:, 3:, 3:] = np.trace(squares, axis1=1, axis2=2)[:, None, None] * np.eye(3) - squares
    return found


class FreeBodies:
    """Rigid bodies that move freely.

    Parameters
    ----------
    box
        Whose periodic axes and sides contacts know.
    bodies
        All of them with `Free` motions.
    contact
        Repulsion of near bodies; None: they may overlap.
    """

    def __init__(self, box: Box, bodies: Sequence[ImmersedBody], contact: Contact | None) -> None:
        motions = [body.motion for body in bodies]
        free = [m for m in motions if isinstance(m, Free)]
        d = self.dimensions = box.dimensions
        self._turns = 1 if d == 2 else 3
        self.box, self.contact = box, contact
        self.names = [body.name for body in bodies]
        centres = [m.centre if len(m.centre) else b.markers.centre for m, b in zip(free, bodies, strict=True)]
        self.start = np.array(centres, dtype=np.float64)
        self.mass, self.displaced = np.array([m.mass for m in free]), np.array([m.displaced for m in free])
        self.virtual = np.array([m.virtual for m in free]) * self.displaced
        self.inertia = np.array([self._inertia(m) for m in free])
        self.gravity = _rows([m.gravity for m in free], d)
        self.stiffness, self.damping = (_rows([getattr(m, n) for m in free], d) for n in ("stiffness", "damping"))
        self.translates = _rows([np.asarray(m.translates, float) for m in free], d)
        self.turning = _rows([float(m.turns) for m in free], self._turns)
        self.radius = np.array([m.radius for m in free])
        self._check_density()
        self.follow = self._following()
        self._first = _rows([m.velocity for m in free], d), _rows([m.spin for m in free], self._turns)
        if contact is not None and not (self.radius > 0).all():
            raise SolverError(f"body {self.names[int(np.argmin(self.radius))]!r}: a contact needs the radius of bodies")
        self.restart()

    def _inertia(self, motion: Free) -> Values:
        given = np.asarray(motion.inertia, dtype=np.float64)
        if self.dimensions == 2:
            return given.reshape(1, 1)
        return np.diag(np.broadcast_to(given, (3,))) if given.ndim < 2 else given

    def _check_density(self) -> None:
        """Raise `SolverError` for bodies that are lighter than what was tried."""
        for name, mass, displaced in zip(self.names, self.mass, self.displaced, strict=True):
            if mass < _LIGHTEST * displaced:
                raise SolverError(
                    f"body {name!r}: it has {mass / displaced:.3g} of the density of the fluid, and from {_LIGHTEST} "
                    "on free bodies are stable; make it heavier, or prescribe its motion"
                )

    def _following(self) -> Values:
        r"""Return which share of a change of the body's acceleration its inner fluid takes up in a step, ``(n, 1)``.

        All of it where the body is no lighter than the fluid. Else sound crosses the body first: the share is
        :math:`c_s / D`, with the diameter of a disk or ball as large; twice that grows, if slowly.
        """
        size = self.displaced / np.pi if self.dimensions == 2 else 0.75 * self.displaced / np.pi
        radius = np.maximum(size ** (1.0 / self.dimensions), 1e-12)
        share = np.minimum(1.0, 0.5 * SOUND_SPEED_SQUARED**0.5 / radius)
        return np.where(self.mass < self.displaced, share, 1.0)[:, None]

    def restart(self) -> None:
        """Go back to the first state."""
        self.centre, n = self.start.copy(), len(self.start)
        self.velocity, self.spin = self._first[0].copy(), self._first[1].copy()
        self.acceleration, self.twist = np.zeros_like(self.velocity), np.zeros_like(self.spin)
        self.inner, self.inner_twist = np.zeros_like(self.velocity), np.zeros_like(self.spin)
        self.matrix = np.broadcast_to(np.eye(self.dimensions), (n, self.dimensions, self.dimensions)).copy()

    def kept(self) -> dict[str, Values]:
        """Return what the next step depends on."""
        return {name: getattr(self, name).copy() for name in _KEPT}

    def resume(self, kept: Mapping[str, Values]) -> None:
        """Go on from what `kept` returned."""
        for name in _KEPT:
            setattr(self, name, kept[name].copy())

    @property
    def state(self) -> Values:
        """One row a body: centre, rotation matrix, velocity, spin."""
        n = len(self.centre)
        return np.concatenate([self.centre, self.matrix.reshape(n, -1), self.velocity, self.spin], axis=1)

    def advance(self) -> None:
        """``X += (U^n + U^{n+1}) / 2``, ``R = R(mean spin) R``; `Divergence` if that is nowhere."""
        centre = self.centre + self.velocity - 0.5 * self.acceleration
        mean = self.spin - 0.5 * self.twist
        turned = rotation(mean[:, 0] if self.dimensions == 2 else mean, self.dimensions) @ self.matrix
        self._check_finite(centre, turned)
        if self.dimensions == 2:
            turned /= np.sqrt(np.linalg.det(turned))[:, None, None]
        else:  # through unit quaternions, which keeps rounding from adding up
            turned = Rotation.from_matrix(turned).as_matrix()
        self.centre, self.matrix = centre, turned

    def solve(self, sums: Values, *, again: bool) -> None:
        r"""Find velocities that fulfil Newton's equations together with the forces which follow from them.

        .. math::
           \Bigl[\mathrm{diag}\bigl(M + c M_f, (1 + c M_f / M) I\bigr) + S\Bigr]
           \begin{pmatrix} U^{n+1} - U^n \\ \Omega^{n+1} - \Omega^n \end{pmatrix}
           = \begin{pmatrix} F(U^n) + \ldots \\ T(\Omega^n) + \ldots \end{pmatrix}

        with the change ``S`` of force and torque on the fluid with velocity and spin, and the other forces of `Free`.

        Parameters
        ----------
        sums : (n, 7) or (n, 16)
            Forces on the fluid at the present velocities, and how they change: see
            `fluxloom.lbm.immersed.markers.kernels`.
        again
            Whether this is a further round of a step: the other forces then have been taken into account.

        Raises
        ------
        Divergence
            If what is given, or a velocity, is not finite.
        """
        self._check_finite(sums)
        d, t = self.dimensions, self._turns
        force, torque = -sums[:, -d - t : -t], -sums[:, -t:]
        inertia = self._inertias()
        matrix = _answers(sums, d)
        ratio = (1.0 + self.virtual / self.mass)[:, None, None]
        matrix[:, :d, :d] += (self.mass + self.virtual)[:, None, None] * np.eye(d)
        matrix[:, d:, d:] += inertia * ratio
        if not again:
            self.inner = self._followed(self.inner, self.acceleration)
            self.inner_twist = self._followed(self.inner_twist, self.twist)
            force = force + self._other_forces()
            torque = torque + self._other_torques(inertia)
        moves = np.concatenate([self.translates, self.turning], axis=1)
        matrix = matrix * moves[:, :, None] * moves[:, None, :] + np.eye(d + t) * (1.0 - moves)[:, None, :]
        change = np.linalg.solve(matrix, (moves * np.concatenate([force, torque], axis=1))[:, :, None])[:, :, 0]
        self.velocity, self.spin = self.velocity + change[:, :d], self.spin + change[:, d:]
        if again:
            self.acceleration, self.twist = self.acceleration + change[:, :d], self.twist + change[:, d:]
        else:
            self.acceleration, self.twist = change[:, :d], change[:, d:]
        self._check_finite(self.velocity, self.spin)

    def _check_finite(self, *values: npt.NDArray[Any]) -> None:
        """Raise `Divergence` naming the first body of which a number is not finite."""
        finite = np.all([np.isfinite(v).reshape(len(v), -1).all(axis=1) for v in values], axis=0)
        if not finite.all():
            raise Divergence(f"body {self.names[int(np.argmin(finite))]!r}: its velocity is not finite any more")

    def _followed(self, inner: Values, outer: npt.NDArray[Any]) -> Values:
        """Return accelerations of the fluid inside, from those of a step before and those of the bodies."""
        return np.where(self.follow < 1.0, inner + self.follow * (outer - inner), outer)

    def _inertias(self) -> Values:
        """Return the inertia of the bodies as they lie now."""
        if self.dimensions == 2:
            return self.inertia
        return self.matrix @ self.inertia @ self.matrix.transpose(0, 2, 1)

    def _other_forces(self) -> Values:
        """Return what acts beside the fluid around, and what the fluid inside takes."""
        weight = (self.mass - self.displaced)[:, None] * self.gravity
        spring = self.stiffness * (self.centre - self.start) + self.damping * self.velocity
        inner = self.displaced[:, None] * self.inner + self.virtual[:, None] * self.acceleration
        return weight - spring + inner + self.contacts()

    def _other_torques(self, inertia: Values) -> Values:
        """Return what Euler's equations have beside torques; the fluid inside turns as a rigid body of its density."""
        share, added = (self.displaced / self.mass)[:, None], (self.virtual / self.mass)[:, None]
        turn = "nab,nb->na"
        inner = np.einsum(turn, inertia, self.inner_twist) * share + np.einsum(turn, inertia, self.twist) * added
        if self.dimensions == 2:
            return inner
        momentum = np.einsum("nab,nb->na", inertia, self.spin)
        return inner - (1.0 - share) * cross(self.spin, momentum)

    # -------------------------------------------------------------------------------------- contacts
    def contacts(self) -> Values:
        """Return the repulsion of each body by others and by sides, ``(n, d)``.

        ``F_i = sum_j s ((R_i + R_j + r - |X_i - X_j|) / r)_+^2 n_ij``, see `Contact`.
        """
        found = np.zeros_like(self.centre)
        if self.contact is None:
            return found
        reach, strength = self.contact.reach, self.contact.strength
        joined = np.array(self.box.periodic)
        size = np.array(self.box.shape, dtype=np.float64)
        places = np.where(joined, np.mod(self.centre, size), self.centre)
        far = 4.0 * (size.max() + np.abs(places).max())
        periods = np.where(joined, size, far)
        tree = KDTree(np.mod(places, periods), boxsize=periods)
        pairs = tree.query_pairs(2.0 * float(self.radius.max()) + reach, output_type="ndarray")
        if len(pairs):
            i, j = pairs.T
            apart = places[i] - places[j]
            apart -= np.where(joined, size * np.round(apart / size), 0.0)
            distance = np.maximum(np.linalg.norm(apart, axis=1), 1e-12)
            gap = self.radius[i] + self.radius[j] + reach - distance
            push = (strength * np.maximum(0.0, gap / reach) ** 2 / distance)[:, None] * apart
            np.add.at(found, i, push)
            np.add.at(found, j, -push)
        for axis in np.flatnonzero(~joined):
            low = reach - (places[:, axis] + 0.5 - self.radius)
            high = reach - (size[axis] - 0.5 - places[:, axis] - self.radius)
            push = np.maximum(0.0, low / reach) ** 2 - np.maximum(0.0, high / reach) ** 2
            found[:, axis] += strength * push
        return found
