"""Halo exchange: whatever the types and layouts, halos hold what the owners have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.codegen.exchange import Field, record_bytes
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.dtypes import scalar
from fluxloom.core.errors import CommError
from fluxloom.device.buffer import RemoteBuffer
from fluxloom.dsl.declare.parts import Part, refresh_host
from fluxloom.dsl.ranks.exchange import Exchange
from fluxloom_lab.attack.loops.worlds import World, owners, random_mesh

LAYOUTS = (fl.AoS(), fl.SoA(), fl.Blocked(4))
TYPES = ("float64", "uint8", "float32", "int32", "float16", "int64")
SHAPES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 2), (5,))
MESH = random_mesh(41, 70)


def stored(dat: fl.Dat) -> np.ndarray:
    """Return the values of every place, ``(places, dim)``."""
    values = dat._stored(write=False)
    return np.array(values).reshape(-1, dat.dim)[: dat.set.storage_size]


def values(name: str, number: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return values of all elements that tell element, dat and component; every bit pattern occurs."""
    size = MESH.sizes[name]
    bits = np.random.default_rng(number).integers(0, 256, (size, *shape, np.dtype(dtype).itemsize), dtype=np.uint8)
    return bits.view(dtype)[..., 0]


def declare(world: World, seed: int) -> list[tuple[str, fl.Dat, np.ndarray]]:
    """Return dats of many types on several sets, in other layouts on every rank, and all their values."""
    rng, mine = np.random.default_rng(seed), np.random.default_rng((seed, world.rank))
    out = []
    for number in range(6):
        name = str(rng.choice(["cells", "points", "edges"]))
        dtype, shape = str(rng.choice(TYPES)), SHAPES[rng.integers(len(SHAPES))]
        whole = values(name, number, dtype, shape)
        world.layout = LAYOUTS[mine.integers(3)]
        out.append((name, world.dat(name, whole, f"d{number}", dtype=dtype), whole))
    return out


@pytest.mark.parametrize("device", ["cpu", pytest.param("opencl", marks=pytest.mark.opencl), "mixed"])
@pytest.mark.parametrize("ranks", [2, pytest.param(5, marks=pytest.mark.long)])
def test_halos_hold_the_owners_bits(device: str, ranks: int) -> None:
    """One message a neighbour for dats of all kinds; a rank may store them otherwise than its neighbour."""
    if device == "mixed":
        pytest.importorskip("pyopencl")

    def rank(comm: Comm) -> None:
        name = device if device != "mixed" else ("cpu", "opencl")[comm.rank % 2]
        world = World(MESH, comm, owners("gap" if ranks == 5 else "random", 70, ranks), name)
        for seed in range(3 if device == "cpu" else 1):
            made = declare(world, seed)
            exchange = Exchange(world.ctx, [dat for _, dat, _ in made])
            for _ in range(2):
                exchange()
            for over, dat, whole in made:
                part = world.sets[over].part
                assert part is not None
                want = np.ascontiguousarray(whole[part.numbers].reshape(part.stored, dat.dim))
                if isinstance(dat.buffer, RemoteBuffer):
                    dat.buffer.download()
                assert stored(dat).tobytes() == want.tobytes(), (over, dat)
                assert dat.current

    if device != "cpu":
        from tests.conftest import missing

        if lack := missing("opencl"):
            pytest.skip(lack)
    run_threads(ranks, rank)


def test_messages_are_as_short_as_can_be() -> None:
    def rank(comm: Comm) -> None:
        world = World(MESH, comm, owners("random", 70, 3))
        part = world.sets["cells"].part
        assert part is not None
        a = world.dat("cells", np.zeros((70, 3)), "a", dtype="float32")
        b = world.dat("cells", np.zeros(70), "b", dtype="uint8")
        exchange = Exchange(world.ctx, [b, a])
        sent = sum(p.size for p in part.send)
        assert exchange.bytes_sent == 16 * sent  # 13 bytes, in whole words
        assert exchange.neighbours == list(part.neighbours)
        assert exchange.name == "b+a"

    run_threads(3, rank)


@pytest.mark.parametrize(("kinds", "size"), [
    ([("float64", 4), ("float64", 1)], 40), ([("uint8", 1)], 8), ([("float64", 1), ("float16", 3), ("uint8", 2)], 16),
    ([("float16", 4)], 8), ([("float16", 5)], 16),
])  # fmt: skip
def test_records_are_whole_words(kinds: list[tuple[str, int]], size: int) -> None:
    assert record_bytes([Field(scalar(t), n, fl.AoS()) for t, n in kinds]) == size


def test_an_exchange_follows_a_dat_to_another_buffer() -> None:
    def rank(comm: Comm) -> None:
        world = World(MESH, comm, owners("random", 70, 2))
        a = world.dat("cells", np.arange(70.0), "a")
        exchange = Exchange(world.ctx, [a])
        exchange()
        old = a.buffer
        a.buffer = world.ctx.allocate(old.nbytes)
        a.write(2.0 * world.numbers("cells"))
        exchange()
        part = world.sets["cells"].part
        assert part is not None
        assert np.array_equal(stored(a)[:, 0], 2.0 * part.numbers)

    run_threads(2, rank)


def test_refreshing_arrays_of_the_host() -> None:
    def rank(comm: Comm) -> None:
        world = World(MESH, comm, owners("gap", 70, 4))
        for name in MESH.sizes:
            part: Any = world.sets[name].part
            assert isinstance(part, Part)
            array = np.where(np.arange(part.stored) < part.owned, part.numbers, -1)[:, None] * np.array([1, 10])
            refresh_host(comm, part, array)
            assert np.array_equal(array, part.numbers[:, None] * np.array([1, 10]))

    run_threads(4, rank)


def test_ranks_exchange_the_same_dats() -> None:
    def rank(comm: Comm) -> None:
        world = World(MESH, comm, owners("random", 70, 2))
        a, b = (world.dat("cells", np.zeros(70), name) for name in "ab")
        with pytest.raises(CommError, match="the ranks disagree"):
            Exchange(world.ctx, [a, b][: 1 + comm.rank])

    run_threads(2, rank)
