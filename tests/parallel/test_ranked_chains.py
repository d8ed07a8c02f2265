"""Random chains of loops on odd parts of random meshes, against one rank."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

import fluxloom as fl
from fluxloom_lab.attack.loops.programs import Program
from fluxloom_lab.attack.loops.worlds import OWNERS, World, alone, difference, owners, random_mesh, together

ONE = fl.Schedule(deterministic="global")
SCHEDULES = {
    "cpu": (None, fl.Schedule(deterministic="plan"), fl.Schedule(strategy="serial"), fl.Schedule(strategy="atomic"),
            fl.Schedule(strategy="gather", block=64), fl.Schedule(strategy="block_colour", block=32)),
    "items": (None, fl.Schedule(deterministic="plan"), fl.Schedule(strategy="atomic"),
              fl.Schedule(strategy="gather", block=48), fl.Schedule(strategy="block_colour", block=48, stage=True)),
}  # fmt: skip
MIXED = (("cpu", 1), ("opencl", 0), ("cpu", 2))


def check(seed: int, device: Any = "cpu", *, calls: int = 4) -> None:
    """Compare the chain of a seed on several ranks with one rank, every loop by itself there."""
    pick = random.Random(seed)
    exact, fuse, chained = pick.random() < 0.5, pick.random() < 0.7, pick.random() < 0.85
    ranks, kind, cells = pick.choice((2, 3, 7)), pick.choice(("blocks", *OWNERS)), pick.choice((30, 150, 800, 1500))
    layout = pick.choice((None, None, fl.SoA(), fl.Blocked(8)))
    schedule = ONE if exact else pick.choice(SCHEDULES["cpu" if device == "cpu" else "items"])
    mesh = random_mesh(seed, cells, local=pick.random() < 0.7)
    options: dict[str, Any] = {"layout": layout}
    made: Any = device
    if device == "mixed":
        made, schedule = [MIXED[k % 3] for k in range(ranks)], ONE if exact else None
    elif device == "cpu":
        options["threads"] = pick.choice((1, 2))
    words: list[str] = []

    def body(world: World, alone: bool = False) -> Any:
        program = Program(world, seed, fuse=fuse and not alone, exact=exact, chained=chained)
        words.append(program.describe())
        for _ in range(calls):
            program.run()
            program.between()
        return program.outputs()

    want = alone(lambda world: body(world, True), mesh, layout=layout, threads=1, schedule=ONE)
    try:
        got = together(body, mesh, ranks, owners(kind, cells, ranks, seed), made, schedule=schedule, **options)
    except Exception as error:
        error.add_note(f"seed {seed}, {ranks} ranks, {kind}\n{words[0]}")
        raise
    if exact:  # a sum over the ranks has the order of the ranks
        assert not difference({"g": got.pop("g")}, {"g": want.pop("g")}, 1e-13)
    found = difference(got, want, 0.0 if exact else 1e-13)
    assert not found, f"seed {seed}, {ranks} ranks, {kind}, {schedule}: {found}\n{words[0]}"


def some(device: str, short: Sequence[int], long: Sequence[int]) -> list[Any]:
    """Return parameters: a device and the seeds of one test."""
    marks = [] if device == "cpu" else [pytest.mark.opencl]
    return [pytest.param(device, short, id=device, marks=marks)] + [
        pytest.param(device, [seed], id=f"{device}-{seed}", marks=[*marks, pytest.mark.long]) for seed in long
    ]


@pytest.mark.parametrize(("device", "seeds"), [
    *some("cpu", range(2), [2, 3, *range(100, 250)]), *some("mixed", [3], range(300, 330)),
    *some("opencl", [7], range(400, 430)),
])  # fmt: skip
def test_random_chains(device: str, seeds: Sequence[int]) -> None:
    for seed in seeds:
        check(seed, device)
