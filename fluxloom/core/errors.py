"""The error tree: every error the package raises on purpose says what happened and what to do."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "AccessError",
    "CaseError",
    "CheckpointError",
    "CommError",
    "CompileError",
    "DatError",
    "DeviceUnavailable",
    "Divergence",
    "ExportError",
    "FluxloomError",
    "KernelError",
    "LoopCheckError",
    "LoopError",
    "MeshError",
    "OtherRankFailed",
    "OutOfMemory",
    "PlanError",
    "PreconditionerError",
    "SolverError",
    "did_you_mean",
]


class FluxloomError(Exception):
    """Base of every error raised on purpose by this package.

    Attributes
    ----------
    exit_code
        Of a process that it ends: 2, nothing had begun. The run loop says 1 of one that ends a run.
    """

    exit_code: int = 2


class KernelError(FluxloomError):
    """A kernel uses something outside the kernel language, or breaks its access contract.

    Parameters
    ----------
    message
        What is wrong, in one sentence.
    filename, line, column
        Where: 1-based line, 0-based column, as in the user's source file.
    source_line
        The text of that line; printed with a caret under ``column``.
    hint
        What to write instead.
    """

    def __init__(
        self,
        message: str,
        *,
        filename: str = "<kernel>",
        line: int = 0,
        column: int = 0,
        source_line: str = "",
        hint: str = "",
    ) -> None:
        self.message = message
        self.filename = filename
        self.line = line
        self.column = column
        self.source_line = source_line
        self.hint = hint
        super().__init__(self._format())

    def _format(self) -> str:
        parts = [f"{self.filename}:{self.line}: {self.message}"]
        if self.source_line:
            parts += [f"    {self.source_line}", "    " + " " * self.column + "^"]
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


class AccessError(KernelError):
    """A parameter is used against its declared access mode (a ``Read`` assigned, an ``Inc`` read ...)."""


class LoopError(FluxloomError):
    """A kernel cannot be bound to these arguments: wrong set, map, shape, dtype or aliasing."""


class PlanError(FluxloomError):
    """No race-free plan exists for a loop with the requested schedule."""


class DatError(FluxloomError):
    """Values given to a dat, map or set have the wrong shape, dtype or range."""


class ExportError(DatError, BufferError):
    """The memory of a dat and that of an array of another library cannot be one."""


class MeshError(FluxloomError):
    """A mesh file or mesh is broken; the message names the file, the line or the element."""


class CaseError(FluxloomError):
    """A case file is wrong; the message names the file, the key and the allowed values."""


class SolverError(FluxloomError):
    """A computation went wrong at run time (NaN, no convergence, exhausted resource)."""


class Divergence(SolverError):
    """A solution is lost: not finite, or beyond what its equations allow.

    Parameters
    ----------
    message
        What was found, where, when, and what to try: all of it, in words.
    field, value
        Which field is lost, and its value there; empty and NaN: not known.
    element, number, place
        ``"cell"`` or ``"point"``, its number in the whole mesh (-1: not known) and where it is.
    step, time
        Behind which step it was found; the time, where there is one.
    reason
        Which guard found it: ``"finite"``, ``"positive"``, ``"balance"`` ...
    """

    def __init__(
        self, message: str, *, field: str = "", value: float = float("nan"), element: str = "cell", number: int = -1,
        place: tuple[float, ...] = (), step: int = 0, time: float | None = None, reason: str = "finite",
    ) -> None:  # fmt: skip
        self.field, self.value, self.element, self.number, self.place = field, value, element, number, place
        self.step, self.time, self.reason = step, time, reason
        super().__init__(message)

    def with_more(self, text: str) -> Divergence:
        """Return it with more behind its message."""
        return Divergence(
            f"{self}{text}", field=self.field, value=self.value, element=self.element, number=self.number,
            place=self.place, step=self.step, time=self.time, reason=self.reason,
        )  # fmt: skip

class LoopCheckError(SolverError):
    """A loop did what Python would not do: the checking mode, or the reference device, found it.

    Attributes
    ----------
    loop, kernel
        Names of the loop and of its kernel.
    what
        What went wrong, with its values.
    filename, line
        Where in the user's source; empty and 0 where no line is to blame.
    element
        The number of the element in its set, on its rank; -1 where no element is to blame.
    """

    def __init__(
        self, message: str, *, loop: str, kernel: str, what: str, filename: str = "", line: int = 0, element: int = -1
    ) -> None:
        self.loop, self.kernel, self.what = loop, kernel, what
        self.filename, self.line, self.element = filename, line, element
        super().__init__(message)


class PreconditionerError(SolverError):
    """A preconditioner is wrong, and neither the matrix nor the flow is."""


class OutOfMemory(SolverError):
    """The memory of a device is exhausted; the message says how much was asked for and how much there is.

    Parameters
    ----------
    message
        What was asked for, and of which device.
    asked, free, total, held
        Bytes asked for; free and altogether on the device; kept by a pool of this process. 0: not known.
    """

    def __init__(self, message: str, *, asked: int = 0, free: int = 0, total: int = 0, held: int = 0) -> None:
        self.asked, self.free, self.total, self.held = asked, free, total, held
        super().__init__(message)


class DeviceUnavailable(FluxloomError):
    """A device, compiler or optional package is missing; the message says what to install."""


class CommError(FluxloomError):
    """Ranks cannot talk to each other, or one of them is gone: says which, and how to start them."""


class OtherRankFailed(CommError):
    """What a rank waits for does not come: another one has failed, and asks all to meet (`Comm.rally`)."""


class CheckpointError(FluxloomError):
    """A checkpoint cannot be written, read, or does not belong to this run; the one before it stays as it was."""


class CompileError(FluxloomError):
    """The native compiler refused a generated source.

    Parameters
    ----------
    message
        What was being compiled.
    source_path
        The generated source, kept on disk.
    log
        The compiler's own output.
    """

    def __init__(self, message: str, *, source_path: str = "", log: str = "") -> None:
        self.source_path = source_path
        self.log = log
        text = message
        if source_path:
            text += f"\nsource: {source_path}"
        if log:
            text += f"\ncompiler output:\n{log}"
        super().__init__(text)


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the closest allowed word, or an empty string."""
    close = get_close_matches(word, list(allowed), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
