"""Single values that loops read or reduce into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Access
from fluxloom.core.dtypes import Scalar, scalar
from fluxloom.core.errors import DatError
from fluxloom.dsl.acts import kind_of, value_act
from fluxloom.dsl.incoming import incoming, unmasked
from fluxloom.dsl.reductions import forget, require_total
from fluxloom.dsl.runtime import Runtime

__all__ = ["Global", "check_type"]


def check_type(scalar: Scalar, context: Runtime, what: str) -> None:
    """Raise `DatError` when the device has no such type."""
    if reason := context.device.refuses(scalar):
        raise DatError(f"{what} is of {scalar.name}: {reason}")


class Global:
    """A value shared by all elements: read by loops, or reduced into with Inc, Min or Max.

    Parameters
    ----------
    value
        Initial value; a scalar or a small array.

    Raises
    ------
    DatError
        If the dtype cannot be stored, or the device has no such type.
    """

    def __init__(
        self, context: Runtime, value: npt.ArrayLike = 0.0, *, dtype: npt.DTypeLike | None = None, name: str = ""
    ) -> None:
        self.context = context
        self.name = name or "global"
        array = np.asarray(unmasked(value, f"global {self.name!r}"))
        self.shape = array.shape
        self.scalar: Scalar = scalar(dtype if dtype is not None else array.dtype)
        check_type(self.scalar, context, f"global {self.name!r}")
        self.dim = max(1, array.size)
        self.buffer = context.allocate(max(64, self.dim * self.scalar.size))
        self.waiting: Access | None = None
        """How results of the ranks will be combined when somebody wants the value; None: they have been."""
        self.version = 0
        self.act = f"value of {kind_of(self)}".encode()
        self.value = array

    def _flat(self, *, write: bool) -> npt.NDArray[Any]:
        self.context.settle(None if write else self)
        if write:
            forget(self)
        else:
            require_total(self)
        return self.buffer.host(write=write).view(self.scalar.numpy)[: self.dim]

    @property
    def value(self) -> Any:
        """The value: a NumPy scalar, or a copy of the array. On several ranks, reading it is collective."""
        flat = self._flat(write=False)
        return flat[0] if not self.shape else flat.reshape(self.shape).copy()

    @value.setter
    def value(self, value: npt.ArrayLike) -> None:
        array = incoming(value, self.scalar, f"global {self.name!r}")
        if array.shape not in (self.shape, ()):
            raise DatError(f"global {self.name!r}: a value of shape {array.shape} does not fit {self.shape}")
        self.version += 1
        if self.context.ranked:
            self.context.comm.note(b"%s = %s" % (self.act, value_act(array)))
        self._flat(write=True)[:] = array.ravel() if array.shape else array

    @staticmethod
    def read_all(targets: Sequence[Global]) -> list[Any]:
        """Return the values of some globals, with one wait for the device instead of one for each.

        On several ranks, it is collective. All are of one context.
        """
        if targets:
            targets[0].context.settle(None)
            for target in targets:
                require_total(target)
            targets[0].context.device.bring([target.buffer for target in targets])
        return [target.value for target in targets]

    def __repr__(self) -> str:
        return f"Global({self.name}, {self.value})"
