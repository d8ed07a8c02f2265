"""The methods by name, and which one solves tridiagonal systems where the user leaves it open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.device.base import Device
from fluxloom.dsl.tiles.owners import cache_bytes
from fluxloom.linalg.direct.tridiagonal.chunks import Chunks
from fluxloom.linalg.direct.tridiagonal.form import Form, Lines, Method
from fluxloom.linalg.direct.tridiagonal.kernels_cyclic import CyclicReduction
from fluxloom.linalg.direct.tridiagonal.kernels_thomas import Thomas
from fluxloom.linalg.direct.tridiagonal.partition import Partition
from fluxloom.linalg.direct.tridiagonal.plain_cyclic import PlainCyclicReduction
from fluxloom.linalg.direct.tridiagonal.plain_thomas import PlainThomas

__all__ = ["METHODS_ITEMS", "METHODS_PLAIN", "choose", "method_of"]

METHODS_ITEMS: Mapping[str, Callable[[int], Method]] = MappingProxyType(
    {
        "thomas": lambda switch: Thomas(),
        "partition": lambda switch: Partition(),
        "cr": lambda switch: CyclicReduction("cr"),
        "pcr": lambda switch: CyclicReduction("pcr"),
        "cr_pcr": lambda switch: CyclicReduction("cr_pcr", switch),
        "chunks": lambda switch: Chunks(),
    }
)
"""On devices of work items: each takes ``switch``, which only ``cr_pcr`` looks at (0: chosen)."""

METHODS_PLAIN: Mapping[str, Callable[[int, int], Method]] = MappingProxyType(
    {
        "thomas": lambda switch, threads: PlainThomas(threads, cache_bytes(2) * 5 // 8),
        "cr": lambda switch, threads: PlainCyclicReduction("cr", 0, threads),
        "pcr": lambda switch, threads: PlainCyclicReduction("pcr", 0, threads),
        "cr_pcr": lambda switch, threads: PlainCyclicReduction("cr_pcr", switch, threads),
    }
)
"""On processors, where functions are plain C: each takes ``switch`` and the threads."""

_MANY = 1 << 17
"""Systems from which an item a system fills a device: about the items that one of today's GPUs has at a time."""

_SHORT = 16
"""Rows up to which a system fits one item, so that a group for each would mostly wait for itself."""

_LONG, _SOME_SYSTEMS, _LONG_SYSTEMS = 256, 1 << 14, 1 << 16
"""Work items of a group from which interleaved lines of their own matrices have better an item each, and how many
lines that takes, also where no group holds one: on an H200 1.17 ms against 1.28 for 65536 lines of 1024 rows, but 1.16
against 0.89 for 131072 of 512, and 1.27 against 0.63 (in parts) for 8192 of 4096."""


def choose(device: Device, form: Form, lines: Lines) -> str:
    """Return the name of the method for systems, by device, rows, systems and layout.

    On processors it is Thomas's algorithm: its work is the least, and vectors and threads both have enough systems.
    On devices of work items a group holds a line on its chip, so that memory is read and written once; very short lines
    in large numbers, whose neighbours are of different systems, have an item each; lines that no group can hold are
    divided.
    """
    if not device.items:
        return "thomas"
    if lines.rows <= _SHORT and lines.systems >= _MANY and lines.interleaved:
        return "thomas"
    shape = Partition().shape(form, lines)
    own = form.coefficients == "each" and lines.interleaved
    enough = _LONG_SYSTEMS if shape is None else _SOME_SYSTEMS
    if own and lines.systems >= enough and (shape is None or shape.block > _LONG):
        return "thomas"
    for name in ("partition", "chunks"):
        if not METHODS_ITEMS[name](0).refuses(form, lines):
            return name
    return "thomas"


def method_of(device: Device, form: Form, lines: Lines, name: str, switch: int = 0, threads: int = 1) -> Method:
    """Return a method by name, ``"auto"`` by `choose`.

    Raises
    ------
    SolverError
        If there is no such method on the device, it does not take the switch, or it cannot solve such systems.
    """
    known = METHODS_ITEMS if device.items else METHODS_PLAIN
    wanted = choose(device, form, lines) if name == "auto" else name
    if wanted not in known:
        names = ["auto", *known]
        hint = did_you_mean(str(name), names)
        raise SolverError(f"tridiagonal: method {name!r}{hint} (on {device.name}: {', '.join(names)})")
    if switch and wanted != "cr_pcr":
        raise SolverError(f"tridiagonal: switch={switch} is of method 'cr_pcr' alone, not of {wanted!r}: leave it out")
    found = METHODS_ITEMS[wanted](switch) if device.items else METHODS_PLAIN[wanted](switch, threads)
    why = found.refuses(form, lines)
    if why:
        raise SolverError(f"tridiagonal: {why}")
    return found
