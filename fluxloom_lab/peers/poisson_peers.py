"""Poisson solvers as users write them with the library of a device: transforms along all axes, and a division."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.packages import require
from fluxloom.dsl.context import Context
from fluxloom.machine.system import package_version
from fluxloom.perf.stopwatch import Run

__all__ = ["Peer", "usual_solver"]

_KINDS = {("neumann", "cell"): ("dct", 2), ("dirichlet", "cell"): ("dst", 2), ("dirichlet", "node"): ("dst", 1)}


@dataclass(frozen=True)
class Peer:
    """A solver to compare with: what it is, a call of it, and what it found."""

    name: str
    run: Run
    solution: Callable[[], npt.NDArray[Any]]


def usual_solver(
    context: Context, sides: Sequence[str], centring: str, f: npt.NDArray[Any], spacing: float
) -> Peer | None:
    """Return the usual solver of a problem on a device; None where its library has no such transforms."""
    if context.device.name == "cpu":
        from scipy import fft

        title = f"scipy {package_version('scipy')}, {context.threads} workers"
        return _solver(np, fft, {"workers": context.threads}, title, sides, centring, f, spacing)
    if not context.device.name.startswith("cuda"):
        return None
    if any(side != "periodic" and _KINDS[side, centring][1] == 1 for side in sides):
        return None  # CuPy has the second and the third kind only
    cupy = require("cupy", "cuda", "comparing with CuPy")
    fft = require("cupyx.scipy.fft", "cuda", "comparing with CuPy")
    device: Any = context.device
    with device.active(), device.stream:
        peer = _solver(cupy, fft, {}, f"CuPy {cupy.__version__}", sides, centring, f, spacing)

    def run() -> None:
        with device.active(), device.stream:
            peer.run()

    return replace(peer, run=run)


def _eigenvalues(side: str, centring: str, n: int, spacing: float) -> npt.NDArray[Any]:
    """Return the eigenvalues of the second difference in the order of the transform."""
    k = np.arange(n)
    if side == "periodic":
        return (2.0 * np.cos(2.0 * np.pi * k / n) - 2.0) / spacing**2
    if side == "neumann":
        return (2.0 * np.cos(np.pi * k / n) - 2.0) / spacing**2
    return (2.0 * np.cos(np.pi * (k + 1) / (n if centring == "cell" else n + 1)) - 2.0) / spacing**2


def _solver(
    library: Any,
    fft: Any,
    extra: dict[str, int],
    title: str,
    sides: Sequence[str],
    centring: str,
    f: npt.NDArray[Any],
    spacing: float,
) -> Peer:
    """Return a solver: real transforms where there are walls, a Fourier transform along the periodic axes."""
    walls = [axis for axis, side in enumerate(sides) if side != "periodic"]
    periodic = [axis for axis, side in enumerate(sides) if side == "periodic"]
    total = library.zeros((1,) * f.ndim, f.dtype)
    for axis, side in enumerate(sides):
        values = _eigenvalues(side, centring, f.shape[axis], spacing)
        if periodic and axis == periodic[-1]:
            values = values[: f.shape[axis] // 2 + 1]
        form = [1] * f.ndim
        form[axis] = values.size
        total = total + library.asarray(values.astype(f.dtype)).reshape(form)
    singular = "dirichlet" not in sides
    if singular:
        total.reshape(-1)[0] = 1.0
    kind, number = _KINDS[sides[walls[0]], centring] if walls else ("dct", 2)
    there, back = getattr(fft, f"{kind}n"), getattr(fft, f"i{kind}n")
    given = library.asarray(f)
    found: list[Any] = [None]

    def run() -> None:
        u = there(given, type=number, axes=walls, **extra) if walls else given
        if periodic:
            spectrum = fft.rfftn(u, axes=periodic, **extra)
            spectrum /= total
            if singular:
                spectrum.reshape(-1)[0] = 0.0
            u = fft.irfftn(spectrum, s=[f.shape[axis] for axis in periodic], axes=periodic, **extra)
        else:
            u /= total
            if singular:
                u.reshape(-1)[0] = 0.0
        found[0] = back(u, type=number, axes=walls, **extra) if walls else u

    def solution() -> npt.NDArray[Any]:
        values = found[0]
        return values if isinstance(values, np.ndarray) else values.get()

    return Peer(title, run, solution)
