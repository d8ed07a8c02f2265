"""Buffers: coherence of a host and a device copy, alignment, views that are held."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Loop, Read, Write
from fluxloom.device.base import Buffer, Where
from fluxloom.device.cpu import CpuDevice


class Separate(Buffer):
    """A buffer whose device copy is another array; counts what travels."""

    def __init__(self, nbytes: int, *, stagger: int = 0) -> None:
        super().__init__(nbytes, stagger=stagger)
        self.uploads = self.downloads = 0
        self.remote = np.zeros(nbytes, dtype=np.uint8)
        self.address = self.remote.ctypes.data

    def upload(self) -> None:
        self.uploads += 1
        self.remote[:] = self._bytes

    def download(self) -> None:
        self.downloads += 1
        self._bytes[:] = self.remote

    @property
    def traffic(self) -> tuple[int, int]:
        return self.uploads, self.downloads


def test_coherence() -> None:
    buffer = Separate(64)
    assert buffer.where is Where.BOTH
    buffer.host()
    buffer.device()
    assert (buffer.where, buffer.traffic) == (Where.BOTH, (0, 0))
    buffer.host(write=True)[:] = 7
    assert buffer.where is Where.HOST
    buffer.host()
    assert buffer.traffic == (0, 0)
    buffer.device()
    assert (buffer.where, buffer.traffic) == (Where.BOTH, (1, 0))
    assert (buffer.remote == 7).all()
    buffer.device()
    assert buffer.traffic == (1, 0)
    buffer.device(write=True)
    buffer.remote[:] = 9
    assert buffer.where is Where.DEVICE
    buffer.device(write=True)
    assert buffer.traffic == (1, 0)
    assert (buffer.host() == 9).all()
    assert (buffer.where, buffer.traffic) == (Where.BOTH, (1, 1))
    buffer.device(write=True)
    assert (buffer.host(write=True) == 9).all()
    assert (buffer.where, buffer.traffic) == (Where.HOST, (1, 2))


class SeparateDevice(CpuDevice):
    """A CPU that pretends to have memory of its own."""

    def allocate(self, nbytes: int, stagger: int = 0) -> Buffer:
        return Separate(nbytes, stagger=stagger)


@fl.kernel
def double(a: Read, b: Write):
    b[0] = 2.0 * a[0]


def test_values_travel_when_they_are_read() -> None:
    """A dat written on the host and read there again does not travel; one view is one trip at most."""
    ctx = fl.Context(SeparateDevice())
    over = ctx.set(10, "over")
    a = ctx.dat(over, np.arange(10.0))
    assert a.buffer.where is Where.HOST
    assert a.read().tolist() == list(range(10))
    assert a.buffer.traffic == (0, 0)
    a.buffer.device(write=True)
    a.buffer.remote.view(np.float64)[:10] = 5.0
    assert (a.data_ro == 5.0).all()
    assert (a.read() == 5.0).all()
    assert a.buffer.traffic == (1, 1)
    a.data[0] = 1.0
    assert a.buffer.where is Where.HOST


@pytest.mark.parametrize("stagger", range(15))
def test_alignment(stagger: int) -> None:
    buffer = Buffer(1000, stagger=stagger)
    assert buffer.address % 64 == 0
    assert buffer.nbytes == 1000
    assert not buffer.host().any()


def test_neighbouring_buffers_start_in_different_cache_sets() -> None:
    ctx = fl.Context("reference")
    over = ctx.set(4096, "over")
    starts = {ctx.dat(over).buffer.address % 4096 for _ in range(4)}
    assert len(starts) > 1


@pytest.mark.parametrize("layout", [fl.AoS(), fl.SoA()])
@pytest.mark.parametrize("grid", [False, True])
def test_exported(layout, grid: bool) -> None:
    ctx = fl.Context("reference")
    over = ctx.grid((4, 5), ghost=1) if grid else ctx.set(20, "over")
    dat = ctx.dat(over, shape=(3,), layout=layout)
    assert not dat.buffer.exported
    for take in (lambda: dat.data, lambda: dat.data_ro, lambda: dat.data[1:, 0], *([dat.storage] if grid else [])):
        view = take()
        assert dat.buffer.exported
        assert dat.watched
        part = view[:2]
        del view
        assert dat.buffer.exported
        del part
        assert not dat.buffer.exported
        assert not dat.watched
    dat.read()
    dat.write(1.0)
    assert not dat.buffer.exported


def test_loops_do_not_hold_views() -> None:
    ctx = fl.Context("cpu")
    over = ctx.set(10, "over")
    a, b = ctx.dat(over, np.ones(10)), ctx.dat(over)
    Loop(double, over, a, b)()
    assert not a.buffer.exported
    assert not b.buffer.exported


def test_descriptions() -> None:
    assert "Python" in fl.Context("reference").device.describe()
    assert f"{CpuDevice(2).threads} threads" in CpuDevice(2).describe()
