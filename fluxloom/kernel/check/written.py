"""Formulas that are written as text when a program runs, instead of in a file: from it to what kernels inline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fluxloom.kernel.frontend import Formula

__all__ = ["func_of_text"]


def func_of_text(
    name: str, parameters: Sequence[str], result: str, visible: Mapping[str, Any], about: str
) -> Formula[..., Any]:
    """Return the helper ``def name(parameters): return result``; kernels may call it, and inline it.

    Its digest is that of any other function with the same content: equal texts share what is compiled.

    Parameters
    ----------
    name, parameters
        Of the function.
    result
        An expression of the kernel language.
    visible
        What its free names stand for: intrinsics, other helpers, numbers.
    about
        What messages call the place where it stands, as they call a file.

    Raises
    ------
    KernelError
        For anything outside the kernel language, with the place in the text.
    """
    text = f"def {name}({', '.join(parameters)}):\n    return {result}\n"
    names: dict[str, Any] = {**visible, "__name__": about}
    exec(compile(text, about, "exec", dont_inherit=True), names)
    return Formula(names[name], text.splitlines(keepends=True))
