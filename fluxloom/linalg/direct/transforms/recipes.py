r"""Cosine and sine transforms as Fourier transforms of rows, and what has to be done before and after them.

With :math:`\theta_k = \pi k / (2 n)`:

- dct2: the row is :math:`v_j = x_{2j}`, :math:`v_{n-1-j} = x_{2j+1}`, for even and odd ``n``. Of its transform ``V``,
  :math:`y_k = 2 \Re(e^{-i \theta_k} V_k)` and :math:`y_{n-k} = -2 \Im(e^{-i \theta_k} V_k)` (Makhoul, eqs. 20, 29).
- dct3, its transpose: :math:`V_k = e^{i \theta_k} (x_k - i x_{n-k})`, and the row is put back in order.
- dct4, even ``n``: ``n / 2`` complex values
  :math:`t_j = (x_{2j} + i x_{n-1-2j}) e^{-i \pi (4 j + 1) / (4 n)}`; of their transform ``T``,
  :math:`c_k = T_k e^{-i \pi k / n}`, :math:`y_{2k} = 2 \Re c_k`, :math:`y_{n-1-2k} = -2 \Im c_k`
  (Makhoul, sec. VI, uses the same pairs).
- dct4, odd ``n``: :math:`\cos(2 \pi a b / (8 n))` of odd ``a = 2 j + 1``, ``b = 2 k + 1`` splits by the Chinese
  remainder theorem into an angle of eighths of a circle, whose cosine and sine are :math:`\pm \sqrt{1/2}` with signs
  that are characters, products of one of ``a`` and one of ``b``, and an angle of multiples of :math:`2 \pi / n`. So a
  permutation with signs, one real transform of length ``n``, and sums of its real and imaginary parts do (Chan, Ho).
- dct1, dst1: the even and odd extensions to ``2 (n - 1)`` and ``2 (n + 1)`` values. That is twice the work of the
  recurrences, which lose digits where they divide by small sines.
- dst2, dst3, dst4: the cosine transforms with :math:`(-1)^j` on one side and the other side in reverse order.

References
----------
J. Makhoul: *A fast cosine transform in one and two dimensions*, IEEE Trans. Acoust. Speech Signal Process. 28 (1980).
S. C. Chan, K. L. Ho: *Direct methods for computing discrete sinusoidal transforms*, IEE Proc. F 137 (1990).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

__all__ = ["Collect", "Combine", "Mix", "Recipe", "Spread", "recipe"]

_Real = npt.NDArray[np.float64]
_Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Spread:
    """Real values go to one or two places of a row: ``v[place_0[e]] = sign_0[e] x[source[e]]``, and so for 1.

    Attributes
    ----------
    source
        ``(entries,)``; -1 stands for a zero.
    places
        ``(2, entries)``; -1: nowhere.
    signs
        ``(2, entries)``.
    """

    source: _Whole
    places: _Whole
    signs: _Real


@dataclass(frozen=True, eq=False)
class Mix:
    """Two real values make a complex one: ``V[q] = sum_m (real_m[q] + i imaginary_m[q]) x[source_m[q]]``.

    Attributes
    ----------
    source
        ``(2, entries)``.
    real, imaginary
        ``(2, entries)``.
    """

    source: _Whole
    real: _Real
    imaginary: _Real


@dataclass(frozen=True, eq=False)
class Combine:
    """A complex value makes one or two real ones: ``y[place_m[q]] = real_m[q] Re V[q] + imaginary_m[q] Im V[q]``.

    Attributes
    ----------
    places
        ``(2, entries)``; -1: nowhere.
    real, imaginary
        ``(2, entries)``.
    """

    places: _Whole
    real: _Real
    imaginary: _Real


@dataclass(frozen=True, eq=False)
class Collect:
    """Real values come from places of a row: ``y[e] = sign[e] v[source[e]]``.

    Attributes
    ----------
    source, signs
        ``(entries,)``.
    """

    source: _Whole
    signs: _Real


@dataclass(frozen=True, eq=False)
class Recipe:
    """A transform of ``n`` real values by a Fourier transform.

    Attributes
    ----------
    way
        ``"forward"``: of real values to half of the complex ones; ``"backward"``: the inverse of that, not normalised;
        ``"complex"``.
    length
        Of the Fourier transform.
    before, after
        What makes its row, and what makes the result of it.
    """

    way: str
    length: int
    before: Spread | Mix
    after: Combine | Collect

    @property
    def reals(self) -> int:
        """Real numbers that a row takes: real values, or the complex ones in their place."""
        return 2 * self.length if self.way == "complex" else 2 * (self.length // 2 + 1)


def recipe(kind: str, n: int) -> Recipe:
    """Return how to do a transform.

    Parameters
    ----------
    kind
        ``"dct1"`` to ``"dct4"``, ``"dst1"`` to ``"dst4"``.
    n
        Values; at least 2 of ``"dct1"``.
    """
    if kind in ("dct1", "dst1"):
        return _extended(n, odd=kind == "dst1")
    found = {"2": _second, "3": _third, "4": _fourth if n % 2 == 0 else _fourth_odd}[kind[3]](n)
    if kind.startswith("dct"):
        return found
    # of the sine transforms, the side with half points changes signs, the other one is reversed; of dst4 the source is
    flipped = kind != "dst2"
    before = _flipped_source(found.before, n) if flipped else _signed_source(found.before)
    after = _signed_result(found.after) if flipped else _flipped_result(found.after, n)
    return replace(found, before=before, after=after)


def _second(n: int) -> Recipe:
    e = np.arange(n)
    places = np.where(e % 2 == 0, e // 2, n - 1 - e // 2)
    k = np.arange(n // 2 + 1)
    c, s = np.cos(np.pi * k / (2 * n)), np.sin(np.pi * k / (2 * n))
    other = np.where((k > 0) & (2 * k < n), n - k, -1)
    spread = Spread(e, np.stack([places, np.full(n, -1)]), np.ones((2, n)))
    return Recipe("forward", n, spread, Combine(np.stack([k, other]), 2 * np.stack([c, s]), 2 * np.stack([s, -c])))


def _third(n: int) -> Recipe:
    k = np.arange(n // 2 + 1)
    c, s = np.cos(np.pi * k / (2 * n)), np.sin(np.pi * k / (2 * n))
    second = (k > 0).astype(np.float64)  # there is no x_n
    mix = Mix(np.stack([k, np.where(k > 0, n - k, 0)]), np.stack([c, s * second]), np.stack([s, -c * second]))
    e = np.arange(n)
    return Recipe("backward", n, mix, Collect(np.where(e % 2 == 0, e // 2, n - 1 - e // 2), np.ones(n)))


def _fourth(n: int) -> Recipe:
    j = np.arange(n // 2)
    first = np.pi * (4 * j + 1) / (4 * n)
    c, s = np.cos(first), np.sin(first)
    mix = Mix(np.stack([2 * j, n - 1 - 2 * j]), np.stack([c, s]), np.stack([-s, c]))
    c, s = np.cos(np.pi * j / n), np.sin(np.pi * j / n)
    places = np.stack([2 * j, n - 1 - 2 * j])
    return Recipe("complex", n // 2, mix, Combine(places, 2 * np.stack([c, s]), 2 * np.stack([s, -c])))


def _fourth_odd(n: int) -> Recipe:
    # alpha n + beta 8 = 1 (mod 8 n): a b / (8 n) = alpha a b / 8 + beta a b / n, but for whole numbers
    alpha, beta = pow(n, -1, 8), pow(8, -1, n) if n > 1 else 0
    even, odd = np.array([0, 1, 0, -1, 0, -1, 0, 1]), np.array([0, 1, 0, 1, 0, -1, 0, -1])
    a = 2 * np.arange(n) + 1
    row = a % n
    # the even part of the cosines' row and the odd part of the sines': x_j goes to a's place or to that of 2 n - a
    own = (even[a % 8] + odd[a % 8]) // 2
    mirrored = (odd[a % 8] - even[a % 8]) // 2 * (1 if n % 4 == 1 else -1)
    j = np.arange(n)
    source = np.where(own != 0, j, n - 1 - j)
    inverse = np.argsort(source)  # entries in the order of the source
    signs = (own + mirrored)[inverse].astype(np.float64)
    spread = Spread(j, np.stack([row[inverse], np.full(n, -1)]), np.stack([signs, np.ones(n)]))
    q = beta * a % n
    real = np.sqrt(2.0) * even[alpha * a % 8]
    imaginary = np.sqrt(2.0) * odd[alpha * a % 8]
    places = np.full((2, n // 2 + 1), -1)
    weights = np.zeros((2, 2, n // 2 + 1))
    for k in range(n):
        half, m = (int(q[k]), 0) if 2 * q[k] < n else (n - int(q[k]), 1)
        places[m, half] = k
        weights[0, m, half], weights[1, m, half] = real[k], imaginary[k] if m == 0 else -imaginary[k]
    return Recipe("forward", n, spread, Combine(places, weights[0], weights[1]))


def _extended(n: int, *, odd: bool) -> Recipe:
    length = 2 * (n + 1) if odd else 2 * (n - 1)
    shift = int(odd)
    e = np.arange(n)
    places = np.stack([e + shift, length - e - shift])
    places[1, (places[1] == places[0]) | (places[1] == length)] = -1
    signs = np.stack([np.ones(n), np.full(n, -1.0 if odd else 1.0)])
    if odd:  # the values at both ends are zero
        e = np.concatenate([e, [-1, -1]])
        places = np.concatenate([places, [[0, n + 1], [-1, -1]]], axis=1)
        signs = np.concatenate([signs, np.ones((2, 2))], axis=1)
    q = np.arange(length // 2 + 1) - shift
    results = np.stack([np.where(q < n, q, -1), np.full(q.size, -1)])
    real, imaginary = np.zeros((2, q.size)), np.zeros((2, q.size))
    real[0], imaginary[0] = (0.0, -1.0) if odd else (1.0, 0.0)
    return Recipe("forward", length, Spread(e, places, signs), Combine(results, real, imaginary))


# --------------------------------------------------------------------------------- sines from cosines


def _flipped_source(before: Spread | Mix, n: int) -> Spread | Mix:
    return replace(before, source=n - 1 - before.source)


def _signed_source(before: Spread | Mix) -> Spread | Mix:
    sign = 1.0 - 2.0 * (before.source % 2)
    if isinstance(before, Spread):
        return replace(before, signs=before.signs * sign)
    return replace(before, real=before.real * sign, imaginary=before.imaginary * sign)


def _signed_result(after: Combine | Collect) -> Combine | Collect:
    if isinstance(after, Collect):
        return replace(after, signs=after.signs * (1.0 - 2.0 * (np.arange(after.signs.size) % 2)))
    sign = 1.0 - 2.0 * (after.places % 2)
    return replace(after, real=after.real * sign, imaginary=after.imaginary * sign)


def _flipped_result(after: Combine | Collect, n: int) -> Combine | Collect:
    if isinstance(after, Collect):
        return replace(after, source=after.source[::-1], signs=after.signs[::-1])
    return replace(after, places=np.where(after.places >= 0, n - 1 - after.places, -1))
