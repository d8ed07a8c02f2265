"""A fixed sequence of kernels on an NVIDIA GPU, replayed as one CUDA graph, or a few."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CommError, PlanError
from fluxloom.device.base import Call, Enqueued, Launch, Sequencer
from fluxloom.device.cuda.errors import exceeds_threads, is_fatal, refused_launch
from fluxloom.device.cuda.gpu import CudaGpu
from fluxloom.device.cuda.graph import prioritised
from fluxloom.device.cuda.program import CudaProgram

__all__ = ["CudaSequencer"]

_MOST_GROUPS = 2**31 - 1
_MOST_PENDING = 4096
_NAMES = 8


class _Prepared(NamedTuple):
    """One launch, ready for the driver."""

    function: int
    grid: int
    block: int
    parameters: int
    """Address of the table of addresses of the arguments."""
    call: int
    launch: Launch
    stream: int


class _Stretch:
    """Consecutive work that runs as one graph, once it has been captured.

    Attributes
    ----------
    work
        Launches, and functions of the host that are called in their places.
    graph
        The graph, or None.
    capturing
        Whether there is to be a graph.
    """

    def __init__(self, work: Sequence[_Prepared | Enqueued], *, capturing: bool) -> None:
        self.work = tuple(work)
        self.graph: Any = None
        self.capturing = capturing


class CudaSequencer(Sequencer):
    """Kernels in order on the stream of a device, and functions of the host that ask for more in their places.

    The first run launches kernel by kernel, which brings mistakes to light. From the second run on, two or more
    kernels run as a CUDA graph. Functions of the host are captured in it if all of them can be; else they are
    called between graphs of the kernels before and after them. A graph keeps the arguments it was made with;
    `refresh` drops it, and the next run launches the kernels again. With ``device.profile`` every run does, with
    events and NVTX ranges around each call.

    Parameters
    ----------
    device
        The GPU.
    calls
        What runs.

    Raises
    ------
    PlanError
        When a kernel cannot run in groups of the size that was planned, or in so many.
    """

    def __init__(self, device: CudaGpu, calls: Sequence[Call | Enqueued]) -> None:
        self._device = device
        self._calls = tuple(calls)
        self._stream, self._number, self._start = device.stream, device.number, device.cupy.cuda.driver.launchKernel
        self._get_current: Callable[[], int] = device.cupy.cuda.runtime.getDevice
        self._set_current: Callable[[int], None] = device.cupy.cuda.runtime.setDevice
        self._tables: list[npt.NDArray[Any]] = []  # what the driver reads the arguments from
        self._parts: list[list[_Prepared | Enqueued]] = [
            [call] if isinstance(call, Enqueued) else list(self._prepare(k, call))
            for k, call in enumerate(self._calls)
        ]
        work = [item for part in self._parts for item in part]
        whole = all(item.capturable for item in work if isinstance(item, Enqueued))
        main = self._stream.ptr
        self._stretches = [_Stretch(work, capturing=len(work) > 1)] if whole else _cut(work, main, _waits)
        self._tried = False
        self._pending: list[list[tuple[Any, Any]]] = []
        names = list(dict.fromkeys(call.name for call in self._calls))
        self.name = ", ".join(names[:_NAMES]) + (", ..." if len(names) > _NAMES else "")
        self.seconds: npt.NDArray[np.float64] = np.zeros(len(self._calls), dtype=np.float64)
        self.counts: npt.NDArray[np.int64] = np.zeros(len(self._calls), dtype=np.int64)
        self._ones = np.ones_like(self.counts)

    def __call__(self) -> None:
        """Run the sequence once."""
        device, number = self._device, self._number
        before = number
        try:
            before = self._get_current()
            self._set_current(number)
            device.running = self.name
            if device.profile:
                self._measure()
            else:
                self._replay()
        except device.failures as error:
            raise device.failure(error) from error
        finally:
            if before != number:
                self._set_current(before)
        np.add(self.counts, self._ones, self.counts)

    def _replay(self) -> None:
        for stretch in self._stretches:
            if stretch.graph is not None:
                stretch.graph.launch(self._stream)
            elif self._tried and stretch.capturing:
                self._capture(stretch)
            else:
                self._launch(stretch.work)
        self._tried = True

    @property
    def graphs(self) -> int:
        """Number of CUDA graphs that run now."""
        return sum(stretch.graph is not None for stretch in self._stretches)

    def refresh(self) -> None:
        """Take notice of changed argument words."""
        for stretch in self._stretches:
            stretch.graph = None
        self._tried = False

    def settle(self) -> None:
        """Bring ``seconds`` up to date; waits for the device if runs were measured."""
        if not self._pending:
            return
        device = self._device
        pending, self._pending = self._pending, []
        with device.active():
            elapsed = device.cupy.cuda.get_elapsed_time
            for _, end in pending[-1]:
                device.wait_for(end)
            for events in pending:
                for k, (begin, end) in enumerate(events):
                    self.seconds[k] += 1e-3 * elapsed(begin, end)
        device.events.extend({id(e): e for events in pending for pair in events for e in pair}.values())

    # ------------------------------------------------------------------------------------- launches
    def _prepare(self, place: int, call: Call) -> list[_Prepared]:
        """Build the argument tables of a call; launches without work items are left out."""
        program, words = call.program, call.words
        assert isinstance(program, CudaProgram)
        assert words.dtype == np.int64
        assert words.flags.c_contiguous
        first = words.ctypes.data
        prepared = []
        for launch in call.launches:
            if launch.items <= 0:
                continue
            tail = np.array(launch.tail, dtype=np.int64)
            table = np.empty(len(words) + len(tail) + 1, dtype=np.uintp)
            table[: len(words)] = first + 8 * np.arange(len(words))
            table[len(words) : -1] = tail.ctypes.data + 8 * np.arange(len(tail))
            table[-1] = 0
            self._tables += [words, tail, table]
            grid = self._grid(program, launch)
            function = program.function(launch.symbol)
            stream = self._device.side.stream.ptr if call.aside else self._stream.ptr
            prepared.append(_Prepared(function, grid, launch.block, table.ctypes.data, place, launch, stream))
        return prepared

    @staticmethod
    def _grid(program: CudaProgram, launch: Launch) -> int:
        """Return the number of groups after making sure that they can run."""
        grid = -(-launch.items // launch.block)
        most = program.most_threads(launch.symbol)
        if launch.block > most > 0:
            raise exceeds_threads(launch.symbol, launch.block, most, program.resources(launch.symbol))
        if grid > _MOST_GROUPS:
            raise PlanError(
                f"kernel {launch.symbol} needs {grid} groups of {launch.block} work items; CUDA allows "
                f"{_MOST_GROUPS}: use larger groups with Schedule(block=...)"
            )
        return grid

    def _launch(self, work: Sequence[_Prepared | Enqueued]) -> None:
        """Hand kernels to the driver, one by one, and call the functions between them."""
        start = self._start
        for item in work:
            if isinstance(item, Enqueued):
                item.run()
                continue
            function, grid, block, parameters, _, _, stream = item
            try:
                start(function, grid, 1, 1, block, 1, 1, 0, stream, parameters, 0)
            except self._device.failures as error:
                raise self._refusal(error, item) from error

    def _refusal(self, error: BaseException, item: _Prepared) -> Exception:
        """Return the error of a kernel that did not start."""
        device, call = self._device, self._calls[item.call]
        if is_fatal(error):
            return device.failure(error)
        assert isinstance(call, Call)
        assert isinstance(call.program, CudaProgram)
        needs = call.program.resources(item.launch.symbol)
        return refused_launch(
            error, gpu=device.title, call=call.name, symbol=item.launch.symbol, block=item.block, needs=needs
        )

    def _capture(self, stretch: _Stretch) -> None:
        """Make a graph of a stretch and run it; where that is impossible, do without, or with smaller ones."""
        device = self._device
        hosts = [item for item in stretch.work if isinstance(item, Enqueued)]
        try:
            self._stream.begin_capture()
            try:
                self._launch(stretch.work)
            finally:
                graph = self._stream.end_capture()
        except (*device.failures, CommError) as error:
            if is_fatal(error):
                raise
            stretch.capturing = False
            logging.getLogger("fluxloom").warning("%s: no CUDA graph of %s: %s", device.title, self.name, error)
            self._launch(stretch.work)
            if hosts:
                pieces = _cut(stretch.work, self._stream.ptr, _is_host)
                place = self._stretches.index(stretch)
                self._stretches = [*self._stretches[:place], *pieces, *self._stretches[place + 1 :]]
            return
        aside = any(isinstance(item, _Prepared) and item.stream != self._stream.ptr for item in stretch.work)
        stretch.graph = prioritised(graph) if aside else graph
        for item in hosts:
            if item.captured is not None:
                item.captured(self)
        stretch.graph.launch(self._stream)

    def _measure(self) -> None:
        """Run with an event and a range around each call."""
        device = self._device
        if len(self._pending) * (len(self._calls) + 1) > _MOST_PENDING:
            self.settle()
        ranges = device.cupy.cuda.nvtx
        events: list[tuple[Any, Any]] = []
        last = device.mark()
        for call, part in zip(self._calls, self._parts, strict=True):
            aside = isinstance(call, Call) and call.aside
            begin = device.mark(device.side.stream) if aside else last
            if ranges.available:
                ranges.RangePush(call.name)
            try:
                self._launch(part)
            finally:
                if ranges.available:
                    ranges.RangePop()
            end = device.mark(device.side.stream) if aside else device.mark()
            last = last if aside else end
            events.append((begin, end))
        self._pending.append(events)


def _is_host(item: _Prepared | Enqueued) -> bool:
    """Whether an item is a function of the host."""
    return isinstance(item, Enqueued)


def _waits(item: _Prepared | Enqueued) -> bool:
    """Whether an item is a function of the host that a graph cannot hold."""
    return isinstance(item, Enqueued) and not item.capturable


def _cut(
    work: Sequence[_Prepared | Enqueued], main: int, between: Callable[[_Prepared | Enqueued], bool]
) -> list[_Stretch]:
    """Return stretches that become graphs, and ``between`` them stretches of functions of the host.

    Kernels of another queue than the main one belong to a graph only with what forks and joins that queue.
    """
    stretches = []
    for outside, items in itertools.groupby(work, between):
        found = list(items)
        kernels = [item for item in found if isinstance(item, _Prepared)]
        forked = len(kernels) < len(found) or all(item.stream == main for item in kernels)
        stretches.append(_Stretch(found, capturing=not outside and len(found) > 1 and forked))
    return stretches
