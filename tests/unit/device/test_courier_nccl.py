"""Links of NCCL on a stand-in for it: what is asked for, in which order, captured, and when things go wrong."""

from __future__ import annotations

import ctypes
import gc
import sys
from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import CommError, DeviceUnavailable
from fluxloom.device.base import Call, Launch
from fluxloom.device.cuda.buffer import CudaBuffer
from fluxloom.device.cuda.device import CudaDevice
from fluxloom.device.cuda.nccl import NcclLink
from tests.unit.device.courier_fake import LateCupy


def multiply(_threads: int, target: int, source: int, factor: int) -> None:
    """Multiply the number of another buffer, and add one: order matters."""
    numbers = (ctypes.c_int64 * 1).from_address(target), (ctypes.c_int64 * 1).from_address(source)
    numbers[0][0] = factor * numbers[1][0] % 1_000_003 + 1


def add(_threads: int, target: int, source: int, factor: int) -> None:
    """Add a multiple of the number of another buffer."""
    numbers = (ctypes.c_int64 * 1).from_address(target), (ctypes.c_int64 * 1).from_address(source)
    numbers[0][0] = (numbers[0][0] + factor * numbers[1][0]) % 1_000_003


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LateCupy:
    fake = LateCupy({"fl_multiply": multiply, "fl_add": add})
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setitem(sys.modules, "cupy.cuda.nccl", fake.nccl)
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path / "cache"))
    return fake


@pytest.fixture
def links(cupy: LateCupy) -> list[NcclLink]:
    name = NcclLink.unique_id()
    return [NcclLink(CudaDevice(rank), rank, 2, name) for rank in range(2)]


class Rank:
    """Packs its number, sends it, works meanwhile, receives that of the other rank and uses it."""

    def __init__(self, link: NcclLink, device: CudaDevice) -> None:
        self.device = device
        self.field, self.out, self.into = (device.allocate(8) for _ in range(3))
        self.field.host(write=True).view(np.int64)[:] = 1 + link.rank
        self.field.device()
        peer = 1 - link.rank
        start, finish = link.items("halo", [(peer, self.out.address, 8)], [(peer, self.into.address, 8)])
        self.items = [
            self.kernel("fl_multiply", self.out, self.field, 3),
            start,
            self.kernel("fl_multiply", self.field, self.field, 5 + link.rank),
            finish,
            self.kernel("fl_add", self.field, self.into, 7),
        ]
        self.sequence = device.sequencer(self.items)

    def kernel(self, symbol: str, target: CudaBuffer, source: CudaBuffer, factor: int) -> Call:
        """Return the call of one kernel."""
        program = self.device.compile("fl_multiply fl_add", ["fl_multiply", "fl_add"], "link")
        words = np.array([target.device(), source.device(), factor], dtype=np.int64)
        target.written()
        return Call(symbol, program, words, (Launch(symbol, 1, 32),), [target, source])

    def value(self) -> int:
        """Return what the device has."""
        self.field.written()
        return int(self.field.host().view(np.int64)[0])


def expected(steps: int) -> list[int]:
    """Return the numbers of two ranks after some steps."""
    values = [1, 2]
    for _ in range(steps):
        sent = [3 * v % 1_000_003 + 1 for v in values]
        inner = [(5 + k) * v % 1_000_003 + 1 for k, v in enumerate(values)]
        values = [(inner[k] + 7 * sent[1 - k]) % 1_000_003 for k in range(2)]
    return values


@pytest.mark.parametrize("together", [False, True])
def test_captured_exchange(links: list[NcclLink], cupy: LateCupy, together: bool) -> None:
    """Two ranks exchange numbers inside of graphs; one rank may be steps ahead of the other."""
    ranks = [Rank(link, link._device) for link in links]
    for _ in range(100 if together else 1):
        for rank in ranks:
            for _ in range(1 if together else 100):
                rank.sequence()
    assert [rank.value() for rank in ranks] == expected(100)
    assert [rank.sequence.graphs for rank in ranks] == [1, 1]
    assert [graph.launched for graph in cupy.graphs] == [99, 99]


def test_plain_exchange(links: list[NcclLink], cupy: LateCupy) -> None:
    buffers = [[link._device.allocate(800) for _ in range(2)] for link in links]
    for step in range(5):
        for rank, (link, (out, into)) in enumerate(zip(links, buffers, strict=True)):
            out.host(write=True)[:] = 10 * step + rank
            parcels = [(1 - rank, buffer.address + 8, 200) for buffer in (out, into)]
            out.device()
            link.exchange([parcels[0], (1 - rank, 0, 0)], [parcels[1], (1 - rank, 0, 0)])
        for rank, (_, into) in enumerate(buffers):
            into.written()
            host = into.host()
            assert (host[8:208] == 10 * step + 1 - rank).all()
            assert not host[208:].any()
            assert not host[:8].any()


def test_interior_does_not_wait(links: list[NcclLink], cupy: LateCupy) -> None:
    """Kernels after `start` run while messages are under way; those after `finish` do not."""
    rank = Rank(links[0], links[0]._device)
    interior = rank.device.sequencer(rank.items[:3])
    interior()
    rank.device.stream.synchronize()  # the other rank has sent nothing
    rank.device.sequencer([rank.items[3]])()
    with pytest.raises(AssertionError, match="nobody sends"):
        rank.device.stream.synchronize()


def test_reduce(links: list[NcclLink], cupy: LateCupy) -> None:
    link = links[1]
    link.all_reduce(4096, 3, np.float64, "max")
    nccl = cupy.nccl
    expected = (4096, 4096, 3, nccl.NCCL_FLOAT64, nccl.NCCL_MAX, link._device.stream.ptr)
    assert nccl.ranks[bytes([1]) * 128, 1].reduced == expected
    link.all_reduce(4096, 0, "int32", "sum")
    assert nccl.ranks[bytes([1]) * 128, 1].reduced == expected
    for kind, operation in (("complex128", "sum"), ("float64", "product")):
        with pytest.raises(CommError, match="reduce on the host"):
            link.all_reduce(4096, 1, kind, operation)


def test_close_drops_graphs_first(links: list[NcclLink], cupy: LateCupy) -> None:
    """NCCL would wait for them."""
    ranks = [Rank(link, link._device) for link in links]
    for _ in range(3):
        for rank in ranks:
            rank.sequence()
    for rank, link in zip(ranks, links, strict=True):
        assert rank.sequence.graphs == 1
        link.close()
        link.close()
        assert rank.sequence.graphs == 0
        with pytest.raises(CommError, match="closed"):
            rank.sequence()
        with pytest.raises(CommError, match="closed"):
            link.all_reduce(4096, 1, "int32", "sum")
        with pytest.raises(CommError, match="closed"):
            link.check()
    assert cupy.nccl.ended == [("destroy", 0), ("destroy", 1)]


def test_forgotten_links_are_given_back(links: list[NcclLink], cupy: LateCupy) -> None:
    rank = Rank(links[0], links[0]._device)
    links.clear()
    gc.collect()
    assert cupy.nccl.ended == [("abort", 1)]  # the items of the other keep it
    del rank
    gc.collect()
    assert cupy.nccl.ended == [("abort", 1), ("abort", 0)]


def test_errors(links: list[NcclLink], cupy: LateCupy) -> None:
    link = links[0]
    for peer in (-1, 2):
        with pytest.raises(CommError, match=f"a message for rank {peer} of a link of 2 GPUs"):
            link.start([(peer, 4096, 8)], [])
    link.check()
    cupy.nccl.refuse = "NCCL_ERROR_SYSTEM_ERROR: unhandled system error"
    with pytest.raises(CommError, match=r"GPU 0, rank 0 of 2: an exchange fails: NCCL_ERROR_SYSTEM.*NCCL_DEBUG=WARN"):
        link.start([(1, 4096, 8)], [])
    with pytest.raises(CommError, match="a message has failed"):
        link.check()
    with pytest.raises(CommError, match="the ranks do not find together"):
        NcclLink(CudaDevice(0), 0, 2, bytes(128))
    with pytest.raises(CommError, match=r"rank 2 of a link of 2 GPUs: ranks are 0 \.\.\. 1"):
        NcclLink(CudaDevice(0), 2, 2, bytes(128))
    cupy.nccl.refuse = ""
    link.start([], [])


def test_without_nccl(cupy: LateCupy) -> None:
    assert not NcclLink.missing()
    cupy.nccl.available = False
    assert "needs the library NCCL" in NcclLink.missing()
    with pytest.raises(DeviceUnavailable, match=r"needs the library NCCL.*pip install nvidia-nccl"):
        NcclLink.unique_id()
    with pytest.raises(DeviceUnavailable, match="NCCL"):
        NcclLink(CudaDevice(0), 0, 1, bytes(128))
