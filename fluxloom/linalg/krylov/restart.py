"""The residual of a solution itself, and how a Krylov method goes on from it.

The residual of a recurrence falls on where that of the solution stands still: ``x`` is rounded, and an inconsistent
system has no solution. So a solve ends with ``r = b - A x``, in float64 also of vectors in float32, and iterates again
from there while that falls.

Squares leave the range of numbers long before their roots do: those of 1e-23 in float32, of 1e-165 in float64. Such
systems are iterated in scaled vectors, ``s r`` and ``s x`` with a power of two ``s`` for each system, which changes no
bit of an iteration; `Start.scale` is ``s``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import RW, Const, Inc, Max, Read, Write
from fluxloom.core.errors import PreconditionerError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import fabs
from fluxloom.linalg.direct.calls import MixedChain, sequence
from fluxloom.linalg.exact_sums import with_exact_sums
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.operators import Step, steps_of
from fluxloom.linalg.precond.preconditioning import applied, place_of
from fluxloom.linalg.status import Reals

__all__ = ["Restart", "Start", "held"]

_NULL = {8: 1e-11, 4: 1e-5}
"""Part of the matrix below which its product with constants is rounding, by bytes of a number."""
_PASS = {8: 1e-12, 4: 1e-5}
"""Part of a residual to which it falls before it is measured anew, by bytes of a number."""


@dataclass(frozen=True)
class Start:
    """From where a method iterates; each of shape ``(systems,)``.

    Attributes
    ----------
    norm, residual
        ``|b|`` and ``|b - A x|``.
    limit
        What the residual of these iterations may be.
    scale
        Factor of the vectors that it works with.
    """

    norm: Reals
    residual: Reals
    limit: Reals
    scale: Reals


@kernel
def largest(b: Read, r: Read, of_b: Max, of_r: Max, *, systems: Const[int]):
    """``of_b = max |b|``, ``of_r = max |r|``."""
    for k in range(systems):
        of_b[k] = max(of_b[k], fabs(b[k]))
        of_r[k] = max(of_r[k], fabs(r[k]))


@kernel
def scaled_norms(b: Read, r: Read, of_b: Read, of_r: Read, bb: Inc, rr: Inc, *, systems: Const[int]):
    """``bb += (s b)^2``, ``rr += (t r)^2`` with factors ``s``, ``t``."""
    for k in range(systems):
        v = of_b[k] * b[k]
        w = of_r[k] * r[k]
        bb[k] += v * v
        rr[k] += w * w


@kernel
def scaled(factor: Read, x: RW, *, systems: Const[int]):
    """``x = s x``."""
    for k in range(systems):
        x[k] = factor[k] * x[k]


@kernel
def scaled_copy(factor: Read, x: Read, y: Write, *, systems: Const[int]):
    """``y = s x``."""
    for k in range(systems):
        y[k] = factor[k] * x[k]


def held(squares: Reals, rows: int, size: int) -> bool:
    """Return whether numbers of so many bytes hold the squares of what these are sums of, and of their roundings.

    Parameters
    ----------
    squares
        ``b . b`` and ``r . r``; NaN is held as well as may be.
    rows
        That are summed.
    size
        8 or 4.
    """
    info: Any = np.finfo(np.float64 if size == 8 else np.float32)
    least = float(info.smallest_subnormal) / float(info.eps) ** 2 * max(rows, 1)
    return not (((squares < least) | (squares > float(info.max) * 2.0**-12)).any())


class Restart:
    """Finds the residual of the solution that a method has, and begins its iteration there. Collective.

    Parameters
    ----------
    method
        A `Krylov` method, all of whose vectors are made.

    Attributes
    ----------
    precise
        Whether it is found in float64 for vectors in float32.
    """

    forgets = ("_chains",)

    def __init__(self, method: Any) -> None:
        self.method = m = method
        fine = m.x.scalar.size == 4 and isinstance(m.matrix, SparseMatrix) and not m.context.device.refuses_double
        self.precise = all(m.context.comm.allgather(fine))
        self._found = m.work("b - A x", "float64") if self.precise else m.r
        self._most = m.sums("max |b|"), m.sums("max |r|")
        self._factors = m.sums("s"), m.sums("t")
        self._scale = np.ones(m.systems)
        self._chains: dict[str, Chain | MixedChain] = {}

    # ---------------------------------------------------------------------------------------- what it runs
    def _run(self, name: str, make: Callable[[], Sequence[Step]]) -> None:
        """Run steps, which are made when they are run first."""
        if name not in self._chains:
            self._chains[name] = sequence(with_exact_sums(make()), f"{self.method.name}.{name}")
        self._chains[name]()

    def _maxima(self) -> list[Step]:
        """Return the loops that find ``b - A x``, its largest entry and that of ``b``."""
        m = self.method
        found = m.loop(largest, m.b, self._found, *self._most)
        return [*steps_of(m.matrix.residual(m.x, m.b, self._found)), *(Reset(one) for one in self._most), found]

    def _squares(self) -> list[Step]:
        """Return the loops that find both norms, in float64 where the residual is a vector of float64."""
        m = self.method
        sums = m.bb, m.rr[-1]
        return [*(Reset(one) for one in sums), m.loop(scaled_norms, m.b, self._found, *self._factors, *sums)]

    def _starting(self) -> list[Step]:
        """Return the loops from ``b - A x`` to the first iteration."""
        m, factor = self.method, self._factors[1]
        placed = m.loop(scaled_copy, factor, self._found, m.r) if self.precise else m.loop(scaled, factor, m.r)
        return [placed, *m.begin()]

    # ------------------------------------------------------------------------------------------ what it does
    def measured(self) -> Start:
        """Return ``|b|`` and ``|b - A x|`` of the solution as it is, whatever their size."""
        m = self.method
        self._run("measure", self._maxima)
        factors = _powers(np.stack(m.read(*self._most)), m.x.scalar.size)
        self._give(*factors)
        self._run("norms", self._squares)
        norm, residual = np.sqrt(np.stack(m.read(m.bb, m.rr[-1]))) / factors
        return Start(norm, residual, m.limits_of(norm), factors[1])

    def begin(self, start: Start, *, balanced: bool) -> Start:
        """Begin the iteration at what `measured` has found; return it with the limits and factors that it has.

        Vectors are scaled where squares are not held otherwise, and where they are to be ``balanced``: so that the
        products of residuals, and those of their products with the matrix, are as far from the ends of the range.
        Collective.
        """
        m, size = self.method, self.method.x.scalar.size
        limits = np.maximum(start.limit, _PASS[size] * start.residual)
        with np.errstate(over="ignore", under="ignore"):
            squares = np.stack([start.residual, limits]) ** 2
        plain = not balanced and held(squares[:, start.residual > 0], m.total, size)
        self._scale = np.ones(m.systems) if plain else start.scale
        if balanced and m.preconditioner is None:
            self._scale = self._scale * self._stretch()
        self._give(self._scale, self._scale)
        m.rr[-1].value = m.shaped((self._scale * start.residual) ** 2)
        if not plain:
            self._run("scale", self._resizing)
        self._run("begin", self._starting)
        m.limit_by((self._scale * limits) ** 2)
        return Start(start.norm, start.residual, limits, self._scale)

    def _resizing(self) -> list[Step]:
        return [self.method.loop(scaled, self._factors[1], self.method.x)]

    def _stretch(self) -> Reals:
        """Return powers of two near ``sqrt(|r| / |A r|)``."""
        m = self.method
        image = m.work("A r", self._found.scalar.numpy)

        def product() -> list[Step]:
            found = m.loop(largest, self._found, image, *self._most)
            return [*steps_of(m.matrix.product(self._found, image)), *(Reset(one) for one in self._most), found]

        self._run("stretch", product)
        of_r, of_image = m.read(*self._most)
        return _powers(np.sqrt(of_image / np.where(of_r > 0, of_r, 1.0)), m.x.scalar.size)

    def end(self) -> None:
        """``x = x / s``: give the solution its size back after iterations in scaled vectors."""
        if (self._scale != 1.0).any():
            self._scale = 1.0 / self._scale
            self._give(self._scale, self._scale)
            self._run("scale", self._resizing)
            self._scale = np.ones(self.method.systems)

    def apart(self, start: Start) -> Reals:
        """Return residuals, with those that are 0 found anew: from ``A x`` of itself.

        A solution so large that ``b`` is lost in the terms of ``A x`` leaves 0 of ``b - A x`` too, where constants are
        in the null space. Collective.
        """
        m = self.method
        if "apart" not in self._chains:
            self._image = m.work("A x", self._found.scalar.numpy)
        self._run("apart", lambda: list(steps_of(m.matrix.product(m.x, self._image))))
        b, image = (one.read().reshape(-1, m.systems).astype(np.float64) for one in (m.b, self._image))
        part = (b - image) / np.where(start.norm > 0.0, start.norm, 1.0)
        sums = m.context.comm.reduce((part**2).sum(axis=0), "sum")
        return np.where(start.residual == 0.0, start.norm * np.sqrt(sums), start.residual)

    def hint(self, limits: Reals) -> str:
        """Return what to do where constants are in the null space and the right-hand side is not in the range.

        A part of the residual, its mean, is then that of the right-hand side for every solution.
        """
        m = self.method
        vectors = [np.ones((m.x.set.size, *m.x.shape)), self._signs()]
        b = m.b.read().reshape(m.x.set.size, -1).astype(np.float64)
        mean = m.context.comm.reduce(b.sum(axis=0), "sum") / m.total**0.5
        sizes = self._images(m.matrix.product, vectors)
        if sizes[0] > _NULL[m.x.scalar.size] * sizes[1] or not (abs(mean) > limits).any():
            return ""
        return (
            "constants are in the null space of the matrix (no value is fixed), and b has a mean, which no solution "
            "gives: fix a value, or give nullspace='constant', which takes the mean away"
        )

    def blame(self) -> None:
        """Raise where the preconditioner makes NaN or infinity of finite numbers, and the matrix does not. Collective.

        They are signs, and the right-hand side divided by its largest number, where that is finite. A matrix that makes
        them too is that of a flow that is lost, and so are the numbers of a preconditioner that follows it.

        Raises
        ------
        PreconditionerError
            Which names its class, file and line.
        """
        m = self.method
        b = m.b.read().astype(np.float64)
        most = float(m.context.comm.reduce(np.array([_largest(b)]), "max")[0])
        vectors = [self._signs(), *([b / most] if 0.0 < most < np.inf else [])]
        makers = m.matrix.product, lambda r, z: applied(m.preconditioner, r, z, m.name)
        if [bool(np.isfinite(self._images(make, vectors)).all()) for make in makers] == [True, False]:
            raise PreconditionerError(
                f"{m.name}: the preconditioner {type(m.recipe).__name__} ({place_of(type(m.recipe))}) makes NaN or "
                "infinity of finite numbers: look at its formula, and at what `build` made of the matrix"
            )

    def _signs(self) -> Reals:
        """Return a sign for each row, the same in all systems."""
        x = self.method.x
        signs = np.random.default_rng(x.context.comm.rank).choice([-1.0, 1.0], x.set.size)
        return np.broadcast_to(signs.reshape(-1, *[1] * len(x.shape)), (x.set.size, *x.shape))

    def _images(self, make: Callable[[Dat, Dat], Step | Sequence[Step]], vectors: Sequence[Reals]) -> Reals:
        """Return the largest number of what steps make of each of some vectors, infinity for NaN. Collective."""
        m, sizes = self.method, []
        probe, image = m.work("probe"), m.work("image")
        run = sequence(list(steps_of(make(probe, image))), f"{m.name}.probe")
        for vector in vectors:
            probe.write(vector)
            run()
            sizes.append(_largest(image.read()))
        return m.context.comm.reduce(np.array(sizes), "max")

    def _give(self, *factors: Reals) -> None:
        for target, values in zip(self._factors, factors, strict=True):
            target.value = self.method.shaped(values)


def _largest(values: npt.NDArray[Any]) -> float:
    """Return the largest magnitude, infinity where one is NaN."""
    return float(np.nan_to_num(abs(values), nan=np.inf, posinf=np.inf).max(initial=0.0))


def _powers(sizes: Reals, size: int) -> Reals:
    """Return powers of two that bring sizes near 1; 1 for 0 and what is not finite."""
    most = 1000 if size == 8 else 120
    exponents = np.where(np.isfinite(sizes) & (sizes > 0), np.frexp(sizes)[1], 0)
    return np.ldexp(1.0, np.clip(-exponents, -most, most))
