"""A fixed sequence of OpenCL kernels: arguments are set once, a replay only enqueues and calls what is between."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CompileError
from fluxloom.device.base import Call, Enqueued, Launch, Sequencer
from fluxloom.device.opencl.program import OpenClProgram, keep_source
from fluxloom.device.opencl.queue import OpenClQueue

__all__ = ["OpenClSequencer"]

_PENDING = 4096  # timed launches whose events are kept
_NANO = 1e-9


class OpenClSequencer(Sequencer):
    """Kernels in order on one in-order queue; functions of the host are called between them.

    Parameters
    ----------
    device
        Where they run.
    calls
        Each has one or several launches; a launch without items is left out.

    Raises
    ------
    CompileError
        When a kernel does not take the arguments of its call, or cannot run in groups of the wanted size.
    """

    def __init__(self, device: OpenClQueue, calls: Sequence[Call | Enqueued]) -> None:
        self._device, self._calls = device, tuple(calls)
        self.seconds: npt.NDArray[np.float64] = np.zeros(len(self._calls))
        runs = np.zeros(1, dtype=np.int64)
        # every call runs as often as the sequence does: one number, seen as many, and quick to raise
        self.counts: npt.NDArray[np.int64] = np.lib.stride_tricks.as_strided(runs, (len(self._calls),), (0,))
        self._runs = runs.data
        self._enqueue = device.cl.enqueue_nd_range_kernel
        self._launches: list[tuple[Any, tuple[int], tuple[int]]] = []
        self._arguments: list[tuple[Any, int, npt.NDArray[np.int64]]] = []
        """For each launch the function that sets an argument, the number of its call, and the words last set."""
        self._pending: list[tuple[int, Any]] = []
        self._hosts: list[tuple[int, Enqueued]] = []
        """Functions of the host and the numbers of their items."""
        places: list[int] = []
        for number, call in enumerate(self._calls):
            if isinstance(call, Enqueued):
                self._hosts.append((number, call))
                places.append(len(self._launches))
                continue
            for launch in call.launches:
                if launch.items > 0:
                    self._prepare(number, call, launch)
        bounds = [0, *places, len(self._launches)]
        self._stretches = [slice(begin, end) for begin, end in itertools.pairwise(bounds)]
        """The launches before, between and after the functions of the host."""
        self._epoch = device.epoch

    def _prepare(self, number: int, call: Call, launch: Launch) -> None:
        """Make a kernel object of its own for a launch and set all its arguments."""
        assert isinstance(call.program, OpenClProgram)
        kernel = call.program.kernel(launch.symbol)
        self._check(kernel, call, launch)
        words = call.words.copy()
        # pyopencl's own choice of how to pass a value throws and catches C++ exceptions: 8 us instead of 0.1
        put = getattr(kernel, "_set_arg_buf", kernel.set_arg)
        for place, word in enumerate((*words, *np.array(launch.tail, dtype=np.int64))):
            put(place, word)
        groups = -(-launch.items // launch.block)
        self._launches.append((kernel, (groups * launch.block,), (launch.block,)))
        self._arguments.append((put, number, words))

    def _check(self, kernel: Any, call: Call, launch: Launch) -> None:
        """Find mistakes that drivers answer with a number or, as PoCL does, with the end of the process."""
        device, what = self._device, f"the kernel {launch.symbol!r} of {call.name!r}"
        if kernel.num_args != len(call.words) + len(launch.tail):
            message = (
                f"{what} takes {kernel.num_args} arguments and is given {len(call.words)} words and "
                f"{len(launch.tail)} more"
            )
            assert isinstance(call.program, OpenClProgram)
            raise CompileError(message, source_path=keep_source(call.program.text, call.program.name))
        info = device.cl.kernel_work_group_info
        most, local = (
            int(kernel.get_work_group_info(key, device.handle)) for key in (info.WORK_GROUP_SIZE, info.LOCAL_MEM_SIZE)
        )
        if launch.block > most:
            raise CompileError(
                f"{what} runs in groups of at most {most} items on {device.hardware}, not {launch.block}: "
                f"give its loop Schedule(block={most}) or less"
            )
        if local > device.local_memory:
            raise CompileError(
                f"{what} needs {local} bytes of local memory a group and {device.hardware} has {device.local_memory}: "
                "give its loop a smaller block"
            )

    def refresh(self) -> None:
        """Set the arguments whose words have changed; all of them once buffers were made since the last time.

        A new buffer may have the handle of one that is gone, and a driver may have looked up more than the handle.
        """
        every = self._epoch != self._device.epoch
        self._epoch = self._device.epoch
        for put, number, known in self._arguments:
            words = self._words(number)
            places = range(len(words)) if every else (words != known).nonzero()[0].tolist()
            for place in places:
                put(place, words[place])
            known[:] = words

    def _words(self, number: int) -> npt.NDArray[np.int64]:
        call = self._calls[number]
        assert isinstance(call, Call)
        return call.words

    def __call__(self) -> None:
        """Run the sequence once; returns when everything is enqueued."""
        enqueue = self._enqueue_timed if self._device.profile else self._enqueue_plain
        enqueue(self._stretches[0])
        for (number, host), stretch in zip(self._hosts, self._stretches[1:], strict=True):
            start = time.perf_counter()
            host.run()
            if self._device.profile:
                self.seconds[number] += time.perf_counter() - start
            enqueue(stretch)
        self._runs[0] += 1

    def _enqueue_plain(self, stretch: slice) -> None:
        device = self._device
        queue, enqueue, event, kernel = device.select(timed=False), self._enqueue, None, None
        launches = self._launches[stretch]
        try:
            for kernel, size, block in launches:
                event = enqueue(queue, kernel, size, block)
            queue.flush()
        except device.cl.Error as error:
            raise self._failure(error, kernel) from error
        if launches:
            device.enqueued(event, len(launches))

    def _enqueue_timed(self, stretch: slice) -> None:
        device = self._device
        queue, event, kernel = device.select(timed=True), None, None
        launches = self._launches[stretch]
        if len(self._pending) > _PENDING:
            self.settle()
        try:
            for (kernel, size, block), (_, number, _) in zip(launches, self._arguments[stretch], strict=True):
                event = self._enqueue(queue, kernel, size, block)
                self._pending.append((number, event))
            queue.flush()
        except device.cl.Error as error:
            raise self._failure(error, kernel) from error
        if launches:
            device.enqueued(event, len(launches))

    def _failure(self, error: Exception, kernel: Any) -> Exception:
        """Return the error to raise when the launch of a kernel failed."""
        for (failed, _, _), (_, number, _) in zip(self._launches, self._arguments, strict=True):
            call = self._calls[number]
            if failed is kernel and isinstance(call, Call) and isinstance(call.program, OpenClProgram):
                source = partial(keep_source, call.program.text, call.program.name)
                return self._device.launch_failure(error, f"the kernel {kernel.function_name!r}", source)
        return self._device.launch_failure(error)

    def settle(self) -> None:
        """Add the time from start to end of every timed launch to its call; waits for the last of them."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        try:
            pending[-1][1].wait()
            for number, event in pending:
                profile = event.profile
                self.seconds[number] += (profile.end - profile.start) * _NANO
        except self._device.cl.Error as error:
            raise self._device.launch_failure(error) from error
