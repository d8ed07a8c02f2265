"""Reading a decorated function: its source, its parameters, and all checks that need no shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fluxloom.kernel.contract import check_contract
from fluxloom.kernel.returns import check_returns
from fluxloom.kernel.signature import Signature, read_signature
from fluxloom.kernel.source import FunctionSource, read_source
from fluxloom.kernel.strategies import check_uses
from fluxloom.kernel.subset import check_subset

__all__ = ["read_func", "read_kernel"]


def read_func(function: Callable[..., Any], lines: Sequence[str]) -> FunctionSource:
    """Read a helper and check it.

    Parameters
    ----------
    function
        The decorated function.
    lines
        Of its file, as they were when it was decorated.

    Raises
    ------
    KernelError
        For anything outside the kernel language.
    """
    source = read_source(function, lines)
    arguments = source.node.args
    for extra in (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs):
        if extra is not None:
            raise source.error(extra, "a helper takes positional parameters only")
    if arguments.defaults:
        raise source.error(arguments.defaults[0], "a parameter of a helper has no default")
    check_subset(source, is_kernel=False)
    check_returns(source)
    return source


def read_kernel(
    function: Callable[..., None], lines: Sequence[str], visible: Mapping[str, Any]
) -> tuple[FunctionSource, Signature]:
    """Read a kernel and check it.

    Parameters
    ----------
    function
        The decorated function.
    lines
        Of its file, as they were when it was decorated.
    visible
        Names at the place of definition, for annotations that are strings.

    Raises
    ------
    KernelError
        For anything outside the kernel language.
    AccessError
        When the body breaks an access mode.
    """
    source = read_source(function, lines)
    signature = read_signature(source, visible)
    check_subset(source, is_kernel=True, strategies=signature.strategies)
    optional = frozenset(item.name for item in signature.parameters if item.optional)
    check_uses(source, signature.strategies, optional)
    check_contract(source, signature.parameters)
    return source, signature
