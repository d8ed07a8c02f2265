"""Checks of formulas in case files, as annotations of pydantic take them."""

from __future__ import annotations

from collections.abc import Callable

from fluxloom.core.errors import CaseError
from fluxloom.values.expressions import Expression

__all__ = ["formula_check"]


def formula_check(*variables: str) -> Callable[[str], str]:
    """Return a check of pydantic: a text is empty or a formula in some variables."""

    def check(text: str) -> str:
        try:
            if text:
                Expression(text, variables)
        except CaseError as error:
            raise ValueError(str(error)) from None
        return text

    return check
