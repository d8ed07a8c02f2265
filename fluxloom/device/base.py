"""What every device offers: buffers with a host side, programs, and sequences of calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import FLOAT64, Scalar
from fluxloom.core.errors import DatError
from fluxloom.device.buffer import Buffer, RemoteBuffer, Where
from fluxloom.perf.stopwatch import Stopwatch

if TYPE_CHECKING:
    from fluxloom.device.transfer_queue import TransferQueue

__all__ = [
    "Buffer", "Call", "Device", "Enqueued", "Launch", "Program", "RemoteBuffer", "Resources", "Sequencer",
    "Where",
]  # fmt: skip


@dataclass(frozen=True)
class Resources:
    """What a compiled kernel needs: registers and local (spilled) bytes an item, shared bytes a group."""

    registers: int = 0
    local: int = 0
    shared: int = 0


class Program(ABC):
    """A loaded translation unit.

    Attributes
    ----------
    vectorised
        For each line of the source that the compiler vectorised, what it said (CPU).
    compiled, seconds
        Whether it had to be compiled now, and how long that took.
    """

    vectorised: Mapping[int, str]
    compiled: bool
    seconds: float

    def resources(self, symbol: str) -> Resources | None:
        """Return what a kernel needs, where the driver tells."""
        return None


@dataclass(frozen=True)
class Launch:
    """One kernel of a call.

    Attributes
    ----------
    symbol
        Its function.
    items
        Work items wanted; rounded up to whole groups.
    block
        Work items a group.
    tail
        Values of its trailing 64-bit parameters.
    """

    symbol: str
    items: int = 1
    block: int = 1
    tail: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Call:
    """A generated function with its arguments: one launch on a CPU, one or several on a GPU.

    Attributes
    ----------
    name
        For profilers.
    words
        One 8-byte word a parameter (address, integer or double); may be changed in place between runs.
    kept
        What has to stay alive.
    aside
        Whether a device with a second queue may run it there: what stands between `Enqueued` items that fork
        from the main queue and join it again.
    """

    name: str
    program: Program
    words: npt.NDArray[np.int64]
    launches: tuple[Launch, ...]
    kept: list[Any] = field(default_factory=list)
    aside: bool = False


@dataclass(frozen=True, eq=False)
class Enqueued:
    """A function of the host that stands among the calls of a sequence: it asks the device for work.

    Attributes
    ----------
    name
        For profilers.
    run
        Is called in its place at each run. What it asks of the main queue comes after the calls before it and
        before those after it. It may also wait, unless it is capturable.
    capturable
        Whether ``run`` does nothing but ask for work that a graph can repeat: then it need not be called again
        where a graph is replayed. What it asks of other queues has to be ordered behind the main queue (fork),
        and before the end of the sequence the main queue behind them (join). It must bear to be called once more
        when capturing fails.
    captured
        Is told the sequencer whose graph holds the work. Its `Sequencer.refresh` drops the graph.
    """

    name: str
    run: Callable[[], None]
    capturable: bool = False
    captured: Callable[[Sequencer], None] | None = None


class Sequencer(ABC):
    """A fixed sequence of calls, replayed as one.

    Attributes
    ----------
    seconds, counts
        Time spent in each call and how often it ran. Devices that work asynchronously measure time
        only while ``device.profile`` is set, and keep it up to date with `settle`. The time of an `Enqueued` is
        what it keeps the main queue, or where that is not known the host, from going on.
    """

    seconds: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]

    @abstractmethod
    def __call__(self) -> None:
        """Run the sequence once."""

    def refresh(self) -> None:  # noqa: B027 - most devices read the words at each run
        """Take notice of changed argument words."""

    def settle(self) -> None:  # noqa: B027 - only asynchronous devices have something to wait for
        """Bring ``seconds`` up to date; waits for the device if need be."""

    def reset(self) -> None:
        """Set the counters to zero."""
        self.settle()
        self.seconds[:] = 0
        self.counts[:] = 0


class Device(ABC):
    """A processor that runs loops.

    Attributes
    ----------
    name
        As given to `Context`.
    native
        Whether loops run as generated code (False: as Python functions).
    dialect
        Language of the generated code: a name known to `fluxloom.codegen.language.dialect`.
    shared
        Whether host and device share memory.
    items
        Whether loops run as kernels of work items (False: as functions that loop).
    profile
        Whether the time of each call is measured where that costs something.
    dlpack
        What DLPack calls the memory of the device: a kind and a number; None where arrays cannot be exchanged.
    """

    name: str
    native: bool
    dlpack: tuple[int, int] | None = (1, 0)
    dialect: str = ""
    shared: bool = True
    items: bool = False
    profile: bool = False

    @abstractmethod
    def allocate(self, nbytes: int, stagger: int = 0) -> Buffer:
        """Return a zeroed buffer."""

    @abstractmethod
    def describe(self) -> str:
        """Return one line about the hardware behind the device."""

    def bring(self, buffers: Sequence[Buffer]) -> None:
        """Make the host copies of some buffers current, with one wait for all where the device can."""
        for buffer in buffers:
            buffer.host()

    def compile(self, text: str, symbols: Sequence[str], name: str, *, contract: bool = True) -> Program:
        """Compile a translation unit.

        Raises
        ------
        CompileError
            With the path of the source and what the compiler said.
        """
        raise NotImplementedError(f"{self.name} compiles nothing")

    def sequencer(self, calls: Sequence[Call | Enqueued]) -> Sequencer:
        """Return a replayable sequence of calls."""
        raise NotImplementedError(f"{self.name} runs no generated code")

    def transfer_queue(self) -> TransferQueue | None:
        """Return a new queue of transfers for messages; None where messages lie in memory of the host anyway."""
        return None

    def reset_call(self, words: npt.NDArray[np.int64]) -> Call:
        """Return the call that sets every component of a global: address, components, bytes of one, its bits."""
        raise NotImplementedError(f"{self.name} runs no generated code")

    def resident(self, array: npt.NDArray[Any]) -> tuple[int, Any]:
        """Return the device address of a read-only table, and what keeps it alive."""
        return array.ctypes.data, array

    def memory(self) -> tuple[int, int]:
        """Return the free bytes and all bytes of a memory of the device's own; 0: not known, or it has none."""
        return 0, 0

    # --------------------------------------------------------------------- arrays of other libraries
    def as_array(self, values: Any) -> Any:
        """Return values as an array, without a copy if they are one: in host memory, else of the device's library.

        Raises
        ------
        DatError
            If the values are in the memory of another device.
        """
        if hasattr(values, "__cuda_array_interface__"):
            raise DatError(
                f"the values, a {type(values).__name__}, are in the memory of a GPU, and the context runs on "
                f"{self.name}: copy them to the host first (CuPy: values.get(), PyTorch: values.cpu())"
            )
        return np.asarray(values)

    def why_not_shared(self, values: Any, array: Any) -> str:
        """Return why the memory of values, which are an array now, cannot be a buffer; empty if it can."""
        if not self.shared:
            return f"the {self.name} device cannot use the memory of arrays"
        if not isinstance(values, np.ndarray):
            return f"a {type(values).__name__} is no NumPy array"
        return "it is read-only" if not array.flags.writeable else "" if array.flags.aligned else "it is not aligned"

    def wrap(self, array: Any) -> Buffer:
        """Return a buffer over the memory of an array without gaps."""
        return Buffer.over(array)

    def assign(self, target: Any, source: Any) -> None:
        """Set the values of an array of the device's library from another one, which may be a smaller one."""
        target[...] = source

    def to_numpy(self, array: Any) -> npt.NDArray[Any]:
        """Return an array of the device's library in host memory."""
        return np.asarray(array)

    def synchronize(self) -> None:  # noqa: B027 - only asynchronous devices have something to wait for
        """Wait until everything that was asked for is done."""

    def elapsed(self, run: Callable[[], object]) -> float:
        """Return the seconds that the device needs for what a function asks of it."""
        return Stopwatch(wait=self.synchronize).timed(run)

    @property
    def refuses_double(self) -> bool:
        """Whether the device has no double precision."""
        return bool(self.refuses(FLOAT64))

    def refuses(self, scalar: Scalar) -> str:
        """Return why values of a type cannot be stored or computed here, or an empty string."""
        return ""

    def atomic_add(self, scalar: Scalar) -> bool:
        """Whether indirect increments of a type can be added atomically."""
        return True
