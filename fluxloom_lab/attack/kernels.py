"""Random kernels, chains and programs on a device: ``fluxloom lab kernels``.

A kernel of random statements meets special values and has to leave what the reference device leaves. Chains are fused,
or run in tiles, and programs on ranks, where they have to leave what their loops leave one after the other.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

import fluxloom as fl
from fluxloom.core.errors import DeviceUnavailable, FluxloomError
from fluxloom.dsl.tiles.tiling import TiledChain
from fluxloom_lab.attack.frame import Attack, AttackOptions, Attacks, Trial
from fluxloom_lab.attack.loops.chains import RandomChain, differ
from fluxloom_lab.attack.loops.programs import Program
from fluxloom_lab.attack.loops.text import TEMPLATE, Generator, indented, load_module
from fluxloom_lab.attack.loops.worlds import OWNERS, World, alone, difference, owners, random_mesh, together
from fluxloom_lab.options import option

__all__ = ["KernelOptions", "kernels", "missing_device", "random_kernel"]

Array = npt.NDArray[Any]

EXACT = fl.Schedule(deterministic="global")
SIZE = 41
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 5e-324, -2.2e-308, 1e308, -1e308, 0.75, 2.0**53, 1e-16)
WHOLE = (0, 1, 2, 3, -1, -2, -7, 5, 1000, -(2**31), 2**31 - 1, 2**40)
"""Values that kernels meet; those beyond 32 bits only where dats hold 64."""

_ODD = 0.05
"""Part of the elements where rounding may decide for another branch."""


@dataclass(frozen=True)
class KernelOptions(AttackOptions):
    """What attacks on kernels are given besides."""

    device: str = option("cpu", metavar="NAME", help="Device that is compared with the reference.", shown="cpu")


def random_kernel(seed: int, folder: Path) -> ModuleType:
    """Return a module with the kernel ``k_`` of random statements."""
    return load_module(folder, TEMPLATE.format(body=indented(Generator(seed).block(3))), f"random_{seed}")


def left_by(device: str, kernel: Any, seed: int, schedule: fl.Schedule, special: bool) -> dict[str, Array]:
    """Return what a random kernel leaves on a device."""
    rng = np.random.default_rng(seed)

    def reals(*shape: int) -> Array:
        values = rng.uniform(-1, 1, shape)
        chosen = rng.random(shape) < (0.3 if special else 0.0)
        return np.where(chosen, rng.choice(SPECIAL, shape), values)

    context = fl.Context(device, tuning=False)
    over, points = context.set(SIZE, "over"), context.set(2 * SIZE, "points")
    m = context.map(over, points, rng.permutation(2 * SIZE).reshape(SIZE, 2), "m")
    whole = rng.choice(WHOLE, (SIZE, 2)) if special else rng.integers(0, 4, (SIZE, 2))
    q, n = context.dat(over, reals(SIZE, 3)), context.dat(over, whole, dtype="int64")
    x, r = context.dat(points, reals(2 * SIZE, 2)), context.dat(over, reals(SIZE, 3))
    extra = context.dat(over, reals(SIZE, 2)) if seed % 3 else None
    names = [item.name for item in kernel.constants]
    constants: dict[str, Any] = dict(zip(names, (0.75, bool(seed % 2)), strict=False))
    fl.Loop(kernel, over, q, n, x[m], r, extra, schedule=schedule, **constants)()
    return {"x": x.read(), "r": r.read()}


def _kernel(trial: Trial, device: str, special: bool) -> Iterator[str]:
    """Compare a random kernel on a device with the reference."""
    module = random_kernel(trial.seed, Path.cwd())
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            want = left_by("reference", module.k_, trial.seed, EXACT, special)
        except (OverflowError, FluxloomError):
            trial.counts["refused by Python"] += 1  # int() of an infinity, 0 to a negative power, a huge loop
            return
        for lanes in (1, 8) if device == "cpu" else (0,):
            got = left_by(device, module.k_, trial.seed, replace(EXACT, lanes=lanes), special)
            trial.counts["compared"] += 1
            for name, right in want.items():
                if (part := _apart(got[name], right)) >= _ODD:
                    yield f"lanes {lanes}: {name} differs in {100 * part:.0f} % of the elements"


def _apart(left: Array, right: Array) -> float:
    """Return the part of the numbers that differ; where they are huge, branches and integers may part."""
    with np.errstate(all="ignore"):
        bad = ~np.isclose(left, right, rtol=1e-9, atol=1e-12, equal_nan=True)
        bad &= np.isfinite(right) & (np.abs(right) < 1e12)
    return float(bad.mean())


def _chain(trial: Trial, device: str) -> Iterator[str]:
    """Compare a fused chain with its loops."""
    pick = trial.random()
    dtype = pick.choice(("float64", "float32"))
    trial.counts[dtype] += 1
    if text := differ(trial.seed, device, dtype=dtype, events=pick.random() < 0.7):
        yield text


def _tiles(trial: Trial, device: str) -> Iterator[str]:
    """Compare a chain in tiles, several steps at once, with its loops."""
    pick = trial.random()
    at_once, tiles = pick.choice((1, 2, 3)), pick.choice((2, 3, 5, 17, 40))
    runs = [RandomChain(fl.Context("cpu", tuning=False, threads=n), trial.seed, EXACT, False) for n in (2, 1)]
    first = runs[0].chain
    tiled = TiledChain(first.steps, transient=first.transient, tiles=tiles, steps_at_once=at_once)
    for call in range(3):
        tiled()
        for _ in range(at_once):
            runs[1].chain()
        left, right = (run.values() for run in runs)
        for name, value in right.items():
            same = np.array_equal(left[name], value) if value.ndim else np.allclose(left[name], value, rtol=1e-12)
            if not same:
                yield f"{name} differs after call {call}\n{runs[0].describe()}\n{tiled.describe()}"
                return
        for run in runs:
            run.between()
    trial.counts["not tiled" if tiled.reason else "tiled"] += 1


def _ranks(trial: Trial, device: str) -> Iterator[str]:
    """Compare a program on several ranks, which are threads here, with its loops on one."""
    pick = random.Random(trial.seed)
    ranks, kind, cells = pick.choice((2, 3, 5)), pick.choice(OWNERS), pick.choice((30, 150, 600))
    mesh = random_mesh(trial.seed, cells, local=pick.random() < 0.7)
    layout, fuse = pick.choice((None, fl.SoA(), fl.Blocked(8))), pick.random() < 0.7
    words: list[str] = []

    def body(world: World, plain: bool = False) -> Any:
        program = Program(world, trial.seed, fuse=fuse and not plain, exact=True)
        words.append(program.describe())
        for _ in range(3):
            program.run()
            program.between()
        hidden = {d.name for d in program.transient}
        return {name: item for name, item in program.outputs().items() if name not in hidden}

    options = {"threads": 1} if device == "cpu" else {}
    want = alone(lambda world: body(world, True), mesh, layout=layout, threads=1, schedule=EXACT)
    split = owners(kind, cells, ranks, trial.seed)
    got = together(body, mesh, ranks, split, device, schedule=EXACT, layout=layout, **options)
    trial.counts[f"{ranks} ranks"] += 1
    bad = difference({"g": got.pop("g")}, {"g": want.pop("g")}, 1e-13) or difference(got, want, 0.0)
    if bad:
        yield f"{ranks} ranks, {kind}, {cells} cells: {bad}\n{words[0]}"


def missing_device(device: str) -> Callable[[], str]:
    """Return what says why a device cannot be tried."""

    def missing() -> str:
        import os

        if device in ("cpu", "reference"):
            return ""
        if not (child := os.fork()):  # a device that was opened here would not work in the processes of trials
            try:
                fl.Context(device)
                os._exit(0)
            except DeviceUnavailable:
                os._exit(1)
            finally:
                os._exit(2)
        return f"no {device} device" if os.waitpid(child, 0)[1] else ""

    return missing


def _attack(name: str, act: Callable[..., Iterator[str]], device: str, trials: int, **more: Any) -> Attack:
    def run(trial: Trial) -> Iterator[str]:
        return act(trial, device, **more)

    return Attack(name, run, trials=trials, seconds=180.0, missing=missing_device(device))


class _Kernels(Attacks):
    """The attacks, on the device of the options."""

    def of(self, options: AttackOptions) -> list[Attack]:
        """Return those that the options ask for."""
        device = options.device if isinstance(options, KernelOptions) else "cpu"
        return replace(self, attacks=_attacks(device)).chosen(options.only)


def kernels() -> Attacks:
    """Return the attacks on kernels and chains."""
    return _Kernels("random kernels and chains", _attacks("cpu"), KernelOptions)


def _attacks(device: str) -> tuple[Attack, ...]:
    return (
        _attack("kernels", _kernel, device, 20, special=False),
        _attack("special", _kernel, device, 20, special=True),
        _attack("chains", _chain, device, 5),
        *([_attack("tiles", _tiles, device, 5)] if device == "cpu" else []),
        _attack("ranks", _ranks, device, 5),
    )
