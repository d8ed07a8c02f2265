"""What a kernel was lowered to: lowering depends on shapes and baked constants alone, so it is done once for each."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fluxloom.kernel.marks import Helper
from fluxloom.kernel.record_fields import is_record, strategy_identity

if TYPE_CHECKING:
    from fluxloom.kernel.ir import ArgShape, LoweredKernel

__all__ = ["Specialisations"]

_MOST = 64


class Specialisations:
    """The latest specialisations of one kernel; any number of threads may ask at the same time.

    Parameters
    ----------
    most
        How many are kept; the one that was asked for longest ago goes first.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._known: OrderedDict[Hashable, LoweredKernel] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self, shapes: Mapping[str, ArgShape], baked: Mapping[str, Any], lower: Callable[[], LoweredKernel]
    ) -> LoweredKernel:
        """Return the kernel for some shapes and constants, lowered if it is not there; its errors are passed on."""
        given = _identity(dict(baked))
        if given is None:
            return lower()
        key = (tuple(sorted(shapes.items(), key=lambda item: item[0])), given)
        with self._lock:  # ranks that are threads ask for the same at the same time
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
            found = self._known[key] = lower()
            if len(self._known) > self._most:
                self._known.popitem(last=False)
            return found


def _identity(value: Any) -> Hashable | None:
    """Return what tells a constant from others, types and the sign of zero included; None where nothing does."""
    if isinstance(value, (np.ndarray, np.generic)):
        return None if value.dtype.hasobject else (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, (bool, int, float)):
        return type(value), repr(value)
    if isinstance(value, dict):
        parts = [(name, _identity(part)) for name, part in sorted(value.items())]
        return None if any(part is None for _, part in parts) else tuple(parts)
    if isinstance(value, Helper) or is_record(type(value)):
        found = strategy_identity(value)
        try:
            hash(found)
        except TypeError:  # a field that may change, which is refused
            return None
        return found
    if isinstance(value, (list, tuple)):
        inner = [_identity(part) for part in value]
        return None if None in inner else tuple(inner)
    return None
