"""The checks of one element by Python: what went wrong, with its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fluxloom.kernel import ir
from fluxloom.kernel.check.checks import Checked
from fluxloom.kernel.fold import OPERATIONS
from fluxloom.kernel.intrinsics import INTRINSICS
from fluxloom.kernel.ir import Kind
from fluxloom.kernel.meaning import whole_part

__all__ = ["Found", "examine"]

Found = tuple[int, tuple[Any, ...]]
"""A site and the values that its message shows."""


def _wrapped(value: int) -> int:
    """Return an integer as 64 bits hold it."""
    return (value + 2**63) % 2**64 - 2**63


class _Stop(Exception):
    """The first site was met."""


def examine(
    checked: Checked, values: Mapping[str, Any], constants: Mapping[str, Any], compute: np.dtype[Any]
) -> Found | None:
    """Run the checks of one element.

    Parameters
    ----------
    checked
        The kernel that finds what goes wrong.
    values
        What each data parameter is for this element, as the reference device hands it to the kernel.
    constants
        Values of the run-time constants.
    compute
        Type of the arithmetic.

    Returns
    -------
    Found or None
        The first site at which something went wrong; None if nothing did.
    """
    run = _Examination(checked, values, constants, compute)
    with np.errstate(all="ignore"):
        try:
            run.statements(checked.kernel.body)
        except _Stop:
            site = checked.sites[run.locals[checked.site] - 1]
            return run.locals[checked.site], tuple(run.value(v) for v in site.values)
    return None


class _Examination:
    def __init__(
        self, checked: Checked, values: Mapping[str, Any], constants: Mapping[str, Any], compute: np.dtype[Any]
    ) -> None:
        kernel = checked.kernel
        self.site, self.given, self.constants, self.real = checked.site, values, constants, compute.type
        self.kinds = dict(kernel.scalars)
        self.locals: dict[str, Any] = {}
        self.arrays: dict[str, Any] = {
            a.name: np.zeros(a.shape, compute if a.kind is Kind.REAL else np.int64) for a in kernel.arrays
        }
        self.arrays |= {
            t.name: np.array(t.values, compute if t.kind is Kind.REAL else np.int64).reshape(t.shape)
            for t in kernel.tables
        }
        self.array_kinds = {a.name: a.kind for a in (*kernel.arrays, *kernel.tables)}

    def statements(self, body: tuple[ir.Statement, ...]) -> None:
        """Look at some statements."""
        for node in body:
            self._statement(node)

    def _statement(self, node: ir.Statement) -> None:
        match node:
            case ir.Assign():
                self.locals[node.name] = self._as(self.kinds[node.name], self.value(node.value))
                if node.name == self.site and self.locals[node.name]:
                    raise _Stop
            case ir.StoreLocal():
                place = tuple(self.value(i) for i in node.index)
                self.arrays[node.name][place] = self._as(self.array_kinds[node.name], self.value(node.value))
            case ir.If():
                self.statements(node.body if self.value(node.test) else node.orelse)
            case ir.For():
                for count in range(self.value(node.start), self.value(node.stop), node.step):
                    self.locals[node.name] = count
                    self.statements(node.body)
            case ir.While():
                while self.value(node.test):
                    self.statements(node.body)
            case ir.Update():
                return
            case _:
                raise TypeError(f"{type(node).__name__} is no statement of a check")

    def _as(self, kind: Kind, value: Any) -> Any:
        if kind is Kind.REAL:
            return self.real(value)
        if kind is Kind.BOOL:
            return bool(value)
        return int(whole_part(value)) if isinstance(value, (float, np.floating)) else _wrapped(int(value))

    def value(self, node: ir.Expression) -> Any:
        """Return the value of an expression."""
        return self._as(node.kind, self._evaluated(node))

    def _evaluated(self, node: ir.Expression) -> Any:
        match node:
            case ir.Constant():
                return node.value
            case ir.Local():
                return self.locals[node.name]
            case ir.LocalElement() | ir.TableElement():
                return self.arrays[node.name][tuple(self.value(i) for i in node.index)]
            case ir.ReadConstant():
                return self.constants[node.name]
            case ir.Read():
                return self._read(node)
            case ir.Length():
                return len(self.given[node.parameter])
            case ir.Negate():
                return -self.value(node.operand)
            case ir.Not():
                return not self.value(node.operand)
            case ir.Binary():
                return self._binary(node)
            case ir.Compare():
                return OPERATIONS[node.op](self.value(node.left), self.value(node.right))
            case ir.Boolean():
                return (all if node.op == "and" else any)(self.value(v) for v in node.values)
            case ir.Conditional():
                return self.value(node.yes if self.value(node.test) else node.no)
            case ir.Call():
                return self._call(node)
            case ir.Cast():
                return self.value(node.operand)
        raise TypeError(f"{type(node).__name__} has no value")

    def _read(self, node: ir.Read) -> Any:
        found = self.given[node.parameter]
        place = (*(() if node.leg is None else (self.value(node.leg),)), *(self.value(i) for i in node.index))
        return found[place or (0,)] if np.ndim(found) else found

    def _binary(self, node: ir.Binary) -> Any:
        a, b = self.value(node.left), self.value(node.right)
        if node.kind is Kind.REAL:
            a, b = self.real(a), self.real(b)
        elif node.op in ("//", "%") and b == 0:
            return 0
        return OPERATIONS[node.op](a, b)

    def _call(self, node: ir.Call) -> Any:
        arguments = [self.value(a) for a in node.arguments]
        if node.kind is Kind.INT and node.function in ("floor", "ceil"):
            return np.float64(getattr(np, node.function)(arguments[0]))
        return INTRINSICS[node.function].python(*arguments)
