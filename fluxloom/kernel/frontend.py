"""`@kernel` and `@func`: ordinary Python functions checked and lowered to the intermediate representation."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Generic, ParamSpec, TypeVar, final

from fluxloom.kernel.contract import check_contract
from fluxloom.kernel.ir import ArgShape, ConstantParameter, LoweredKernel, Parameter
from fluxloom.kernel.lowering import lower
from fluxloom.kernel.returns import check_returns
from fluxloom.kernel.signature import read_signature
from fluxloom.kernel.source import Helper, KernelMarker, read_source
from fluxloom.kernel.specialised import Specialisations
from fluxloom.kernel.subset import check_subset

__all__ = ["Func", "Kernel", "func", "kernel"]

P = ParamSpec("P")
R = TypeVar("R")


@final
class Func(Helper, Generic[P, R]):
    """A helper that kernels may call; it is inlined. Called from Python it runs as it is.

    Attributes
    ----------
    function
        The decorated function.
    name, doc
        Its name and docstring.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = function
        self.source = read_source(function)
        arguments = self.source.node.args
        for extra in (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs):
            if extra is not None:
                raise self.source.error(extra, "a helper takes positional parameters only")
        if arguments.defaults:
            raise self.source.error(arguments.defaults[0], "a parameter of a helper has no default")
        check_subset(self.source, is_kernel=False)
        check_returns(self.source)
        self.name = self.source.name
        self.doc = function.__doc__ or ""
        self.__name__ = self.name
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the Python function."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<func {self.name}>"


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
        self.source = read_source(function)
        self.signature = read_signature(self.source, visible)
        check_subset(self.source, is_kernel=True)
        check_contract(self.source, self.signature.parameters)
        self.name = self.source.name
        self.doc = function.__doc__ or ""
        self.filename = self.source.filename
        self.line = self.source.node.lineno
        self.parameters: tuple[Parameter, ...] = self.signature.parameters
        self.constants: tuple[ConstantParameter, ...] = self.signature.constants
        self.defaults: Mapping[str, Any] = self.signature.defaults
        self._specialised = Specialisations()
        self._fixed: LoweredKernel | None = None
        self.__name__ = self.name
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __call__(self, *data: Any, **constants: Any) -> None:
        """Run the Python function: what the reference device does for each element."""
        self.function(*data, **constants)

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def lowered_as(self, lowered: LoweredKernel) -> Kernel:
        """Return a kernel of the same source and constants for loops of one kind: those of this lowered form."""
        other = copy.copy(self)
        other.parameters, other._fixed = lowered.parameters, lowered
        return other

    def lower(self, shapes: Mapping[str, ArgShape], baked: Mapping[str, Any] = MappingProxyType({})) -> LoweredKernel:
        """Specialise the kernel to the shapes of a loop and the values of its baked constants, once for each.

        Parameters
        ----------
        shapes
            How each data parameter is indexed.
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
        return self._specialised.get(shapes, baked, lambda: lower(self.source, self.signature, shapes, baked))


def kernel(function: Callable[..., None]) -> Kernel:
    """Make a kernel of a function; everything that needs no shapes is checked here.

    Raises
    ------
    KernelError
        For anything outside the kernel language, located in the user's source.
    AccessError
        When the body breaks an access mode.
    """
    # annotations may be strings that name things local to the function which defines the kernel
    return Kernel(function, sys._getframe(1).f_locals)


def func(function: Callable[P, R]) -> Func[P, R]:
    """Make a helper of a function: kernels that call it have it inlined.

    Raises
    ------
    KernelError
        For anything outside the kernel language, located in the user's source.
    """
    return Func(function)
