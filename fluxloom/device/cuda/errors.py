"""What errors of the CUDA driver and runtime mean for a user of loops."""

from __future__ import annotations

from fluxloom.core.errors import FluxloomError, PlanError, SolverError
from fluxloom.device.base import Resources

__all__ = ["error_key", "exceeds_threads", "explain", "gibibytes", "is_fatal", "refused_launch"]

_FATAL = frozenset(
    "illegaladdress misalignedaddress launchfailed launchfailure illegalinstruction invalidaddressspace invalidpc "
    "assert hardwarestackerror launchtimeout eccuncorrectable nvlinkuncorrectable contained externaldevice "
    "contextisdestroyed".split()
)
"""After these a process cannot use the GPU any more."""

_REFUSED = frozenset("launchoutofresources invalidvalue invalidconfiguration".split())


def error_key(error: BaseException) -> str:
    """Return the name of an error, spelled alike for driver and runtime: ``illegaladdress``."""
    name = str(error).partition(":")[0].strip().casefold().replace("_", "")
    return name.removeprefix("cudaerror")


def is_fatal(error: BaseException) -> bool:
    """Whether the GPU is lost to this process."""
    return error_key(error) in _FATAL


def gibibytes(nbytes: int) -> str:
    """Return a size for people."""
    return f"{nbytes / 2**30:.2f} GiB" if nbytes >= 2**29 else f"{nbytes / 2**20:.1f} MiB"


def explain(error: BaseException, gpu: str, running: str) -> SolverError:
    """Return the error of a call that was asked for when, or after, something went wrong on the GPU.

    Parameters
    ----------
    error
        From CuPy.
    gpu
        The device.
    running
        The loops that ran last.
    """
    if not is_fatal(error):
        return SolverError(f"{gpu}: {error}")
    where = f" while running {running}, or what ran before it" if running else ""
    return SolverError(
        f"{gpu} stopped with {error}{where}: the results on the device are lost and this process cannot use the GPU "
        "any more; run again with the environment variable CUDA_LAUNCH_BLOCKING=1 to learn which loop it was"
    )


def exceeds_threads(symbol: str, block: int, most: int, needs: Resources | None) -> PlanError:
    """Return the error of a kernel that cannot run in groups of ``block`` work items but only of ``most``."""
    why = f" (it needs {needs.registers} registers a work item)" if needs is not None and needs.registers else ""
    fits = max(32, most // 32 * 32)
    return PlanError(
        f"kernel {symbol} cannot run with {block} work items a group: at most {most} fit{why}; "
        f"use Schedule(block={fits}), or fewer registers with Schedule(registers=...)"
    )


def refused_launch(
    error: BaseException, *, gpu: str, call: str, symbol: str, block: int, needs: Resources | None
) -> FluxloomError:
    """Return the error of a kernel that the driver did not start."""
    if error_key(error) not in _REFUSED:
        return explain(error, gpu, call)
    registers = f"{needs.registers} registers a work item, " if needs is not None else ""
    shared = f"{needs.shared} bytes of shared memory a group, " if needs is not None and needs.shared else ""
    return PlanError(
        f"{gpu} refuses to run kernel {symbol} of {call} ({registers}{shared}{block} work items a group): {error}; "
        "use smaller groups with Schedule(block=...), or fewer registers with Schedule(registers=...)"
    )
