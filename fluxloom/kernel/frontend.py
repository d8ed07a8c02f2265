"""`@kernel` and `@func`: ordinary Python functions checked and lowered to the intermediate representation.

Lowering depends on shapes and baked constants alone, so it is done once for each.
"""

from __future__ import annotations

import copy
import functools
import linecache
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from types import MappingProxyType, MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeAlias, TypeVar, cast, final

import numpy as np

from fluxloom.kernel.record_fields import Helper, KernelMarker, is_record, strategy_identity

if TYPE_CHECKING:
    from fluxloom.kernel.ir import ArgShape, ConstantParameter, LoweredKernel, Parameter
    from fluxloom.kernel.reading import Signature
    from fluxloom.kernel.source import FunctionSource

__all__ = ["Formula", "Func", "Kernel", "Specialisations", "func", "kernel"]

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


P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


@final
class Formula(Helper, Generic[P, R]):
    """What `func` returns: a helper that kernels may call; it is inlined. Called from Python it runs as it is.

    Attributes
    ----------
    function
        The decorated function.
    name, doc
        Its name and docstring.

    Parameters
    ----------
    function
        The function.
    lines
        Its text where no file has it, see `fluxloom.kernel.check.written`; by default those of its file.
    """

    def __init__(self, function: Callable[P, R], lines: Sequence[str] | None = None) -> None:
        self.function = function
        self._lines = _lines(function) if lines is None else lines
        self._meanings: dict[Any, Callable[..., Any]] = {}
        self.name = getattr(function, "__name__", repr(function))
        self.doc = function.__doc__ or ""
        self.__name__ = self.name
        self.__qualname__ = getattr(function, "__qualname__", self.name)
        self.__module__ = getattr(function, "__module__", __name__)
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        if not (_reads_late(function) or _names_its_class(function)):
            self.check()

    @functools.cached_property
    def source(self) -> FunctionSource:
        """Its source, read and checked at first use; see `check` for the errors."""
        from fluxloom.kernel.reading import read_func
        from fluxloom.kernel.source import deeply

        return deeply(lambda: read_func(self.function, self._lines), self.name)

    def check(self) -> None:
        """Read the function and check it, once.

        Raises
        ------
        KernelError
            For anything outside the kernel language, located in the source.
        """
        _ = self.source

    def meaning(self, real: Any) -> Callable[..., Any]:
        """Return the function that does what this one means, with arithmetic of a type, see `kernel.meaning`."""
        return _meaning(self._meanings, self.source, real)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the Python function."""
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None, /) -> Any:
        """Return the helper itself from its class; from a record its method, which runs as it is."""
        return self if instance is None else MethodType(self.function, instance)

    def __reduce__(self) -> str:
        return self.__qualname__  # by its name in its module, as functions

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<func {self.name}>"


if TYPE_CHECKING:  # whatever may be called: decorated methods follow protocols and override as methods do
    Func: TypeAlias = Callable[P, R]
    """What a kernel may be given as a constant and calls: a `func`, or a record with formulas."""
else:
    Func = Formula


@final
class Kernel(KernelMarker):
    """A kernel: what one element of a loop does. Called from Python it runs as it is.

    Attributes
    ----------
    function
        The decorated function.
    name, doc, filename, line
        Its name, docstring and place of definition.
    parameters, constants
        Its data parameters and its constants (keyword-only parameters), in order.
    defaults
        Default values of constants.
    """

    def __init__(self, function: Callable[..., None], visible: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.function = function
        self._lines = _lines(function)
        self._specialised = Specialisations()
        self._meanings: dict[Any, Callable[..., Any]] = {}
        self.name = getattr(function, "__name__", repr(function))
        self.doc = function.__doc__ or ""
        self._fixed: LoweredKernel | None = None
        self._absent: frozenset[str] = frozenset()
        self._less: dict[frozenset[str], Kernel] = {}
        self.__name__ = self.name
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        if not _reads_late(function):
            self._read = self._reading(visible)

    def _reading(self, visible: Mapping[str, Any]) -> tuple[FunctionSource, Signature]:
        from fluxloom.kernel.reading import read_kernel
        from fluxloom.kernel.source import deeply

        return deeply(lambda: read_kernel(self.function, self._lines, visible), self.name)

    @functools.cached_property
    def _read(self) -> tuple[FunctionSource, Signature]:
        return self._reading({})  # the names visible to a function of a module are its globals

    def check(self) -> None:
        """Read the function and check all that needs no shapes, once.

        Raises
        ------
        KernelError
            For anything outside the kernel language, located in the source.
        AccessError
            When the body breaks an access mode.
        """
        _ = self._read

    @property
    def source(self) -> FunctionSource:
        """Its source, read and checked at first use; see `check` for the errors."""
        return self._read[0]

    @property
    def signature(self) -> Signature:
        """Its parameters, constants and defaults."""
        return self._read[1]

    @property
    def filename(self) -> str:
        """The file of its definition."""
        return self.source.filename

    @property
    def line(self) -> int:
        """The line of its ``def``."""
        return self.source.node.lineno

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its data parameters, in order; without those that `leaving_out` leaves out."""
        if self._fixed is not None:
            return self._fixed.parameters
        return tuple(item for item in self.signature.parameters if item.name not in self._absent)

    @property
    def constants(self) -> tuple[ConstantParameter, ...]:
        """Its constants, in order."""
        return self.signature.constants

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Default values of constants."""
        return self.signature.defaults

    def check_strategy(self, name: str, given: Any) -> None:
        """Raise `KernelError` when the value given for a constant is not the strategy that it asks for."""
        item = self.signature.constant(name)
        assert item is not None
        self.signature.check_strategy(self.source, item, given)

    def number(self, name: str, given: Any) -> float | int | bool:
        """Return the value given for a run-time constant as a number of its kind.

        Raises
        ------
        KernelError
            When it is none; the message names the constant.
        """
        item = self.signature.constant(name)
        assert item is not None
        return getattr(self.signature.value(self.source, item, given), "value")

    def __call__(self, *data: Any, **constants: Any) -> None:
        """Run the Python function."""
        self.function(*data, **constants)

    def meaning(self, real: Any) -> Callable[..., Any]:
        """Return the function that the reference device runs for each element, see `kernel.meaning`."""
        whole = _meaning(self._meanings, self.source, real)
        if not self._absent:
            return whole
        there = [item.name not in self._absent for item in self.signature.parameters]

        def called(*data: Any, **constants: Any) -> None:
            given = iter(data)
            whole(*(next(given) if here else None for here in there), **constants)

        return called

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def lowered_as(self, lowered: LoweredKernel) -> Kernel:
        """Return a kernel of the same source and constants for loops of one kind: those of this lowered form."""
        other = copy.copy(self)
        other._fixed = lowered
        return other

    def leaving_out(self, absent: Collection[str]) -> Kernel:
        """Return the kernel of loops that leave out some data (``Read | None``): what is None there is not compiled."""
        whole = self._absent | frozenset(absent)
        if whole == self._absent:
            return self
        other = copy.copy(self)
        other._absent = whole
        return self._less.setdefault(whole, other)  # the same one for all loops

    def lower(self, shapes: Mapping[str, ArgShape], baked: Mapping[str, Any] = MappingProxyType({})) -> LoweredKernel:
        """Specialise the kernel to the shapes of a loop and the values of its baked constants, once for each.

        Parameters
        ----------
        shapes
            How each data parameter is indexed; one that may be left out is None where it is not among them.
        baked
            Values of ``Const[...]`` parameters (those with defaults may be left out); a run-time
            constant given here is folded too.

        Raises
        ------
        KernelError
            When the body does not fit the shapes; located in the user's source.
        AccessError
            When a ``Write`` component is read too early or not written on some path.
        """
        if self._fixed is not None:
            return self._fixed
        from fluxloom.kernel.lowering import lower
        from fluxloom.kernel.source import deeply

        def lowered() -> LoweredKernel:
            return deeply(lambda: lower(self.source, self.signature, shapes, baked), self.name)

        return self._specialised.get(shapes, baked, lowered)


def kernel(function: Callable[..., None]) -> Kernel:
    """Make a kernel of a function; everything that needs no shapes is checked here.

    Kernels of this package itself, which its tests check, are read when they are first used.

    Raises
    ------
    KernelError
        For anything outside the kernel language, located in the user's source.
    AccessError
        When the body breaks an access mode.
    """
    # annotations may be strings that name things local to the function which defines the kernel
    return Kernel(function, sys._getframe(1).f_locals)


def func(function: F) -> F:
    """Make a helper of a function, or a formula of a method: kernels that call it have it inlined.

    What it returns is a `Formula`; for checkers of types it stays the function or the method that it was.

    Raises
    ------
    KernelError
        For anything outside the kernel language, located in the user's source.
    """
    return cast(F, Formula(function))


def _meaning(known: dict[Any, Callable[..., Any]], source: FunctionSource, real: Any) -> Callable[..., Any]:
    """Return what a function means, compiled once for each type of arithmetic."""
    if real not in known:
        from fluxloom.kernel.meaning import meaning
        from fluxloom.kernel.source import deeply

        known[real] = deeply(lambda: meaning(source, real), source.name)
    return known[real]


def _reads_late(function: Callable[..., Any]) -> bool:
    """Whether a function is read at first use: those that stand in the modules of this package, checked by its tests.

    What is defined inside another function is read at once, with the values that its names have there.
    """
    package = (getattr(function, "__module__", "") or "").partition(".")[0]
    return package == __name__.partition(".")[0] and "<locals>" not in getattr(function, "__qualname__", "<locals>")


def _names_its_class(function: Callable[..., Any]) -> bool:
    """Whether a method uses the class in whose body it stands, which is not there yet when it is decorated."""
    code, outer = getattr(function, "__code__", None), getattr(function, "__qualname__", "").split(".")[:-1]
    return code is not None and bool(outer) and outer[-1] in (*code.co_names, *code.co_freevars)


def _lines(function: Callable[..., Any]) -> Sequence[str]:
    """Return the lines of a function's file as they are now; it may be edited before the function is read."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ()
    linecache.checkcache(code.co_filename)
    return linecache.getlines(code.co_filename, getattr(function, "__globals__", None))
