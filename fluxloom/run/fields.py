r"""Fields of a flow: what they are called, and how they are read; those that follow from gradients of the velocity.

.. math:: \omega = \nabla \times u, \qquad Q = \tfrac12 (\|\Omega\|^2 - \|S\|^2)

with :math:`S` and :math:`\Omega` the symmetric and the antisymmetric part of the gradient. Where :math:`Q > 0` a flow
turns more than it deforms.

Source: J. C. R. Hunt, A. A. Wray, P. Moin, *Eddies, streams, and convergence zones in turbulent flows*. Center for
Turbulence Research, Report CTR-S88, 1988.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError, SolverError, did_you_mean
from fluxloom.values.expressions import Expression

__all__ = ["Fields", "Quantity", "curl", "curl_quantities", "gradient_quantities"]

Array = npt.NDArray[Any]

_FORMULA = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)(.*)", re.DOTALL)


@dataclass(frozen=True)
class Quantity:
    """A field whose values are not there yet.

    Attributes
    ----------
    unit
        As ``"m/s"``; empty: it has none, or the solver has none.
    description
        What it is, in a few words.
    values
        Finds the values of the elements that this rank owns, ``(n,)`` or ``(n, components)``. Collective.
    components
        Numbers an element.
    """

    unit: str
    description: str
    values: Callable[[], Array]
    components: int = 1


class Fields(Mapping[str, Array]):
    """Names to values; a value is found once, when it is first asked for, and it is of that moment.

    As a mapping it has the fields that are written where nothing else is asked for. Others it knows too: `chosen`
    gives those that are asked for by name, and formulas of all. On several ranks asking is collective.

    Parameters
    ----------
    quantities
        What is written by default.
    derived
        What else there is.
    """

    def __init__(self, quantities: Mapping[str, Quantity], derived: Mapping[str, Quantity] | None = None) -> None:
        self.quantities = MappingProxyType(dict(quantities))
        self.derived = MappingProxyType({n: q for n, q in (derived or {}).items() if n not in quantities})
        self._found: dict[str, Array] = {}

    @classmethod
    def of(cls, values: Mapping[str, Array]) -> Fields:
        """Return values that are there already as fields without units."""
        if isinstance(values, Fields):
            return values
        widths = {name: 1 if np.ndim(value) == 1 else np.shape(value)[1] for name, value in values.items()}
        return cls({name: Quantity("", "", lambda value=value: value, widths[name]) for name, value in values.items()})

    @property
    def known(self) -> Mapping[str, Quantity]:
        """All that there is, by name."""
        return {**self.quantities, **self.derived}

    @property
    def units(self) -> dict[str, str]:
        """Units of the fields that have one."""
        return {name: quantity.unit for name, quantity in self.quantities.items() if quantity.unit}

    def __getitem__(self, name: str) -> Array:
        if name not in self.quantities:
            raise KeyError(name)
        return self._value(name)

    def __contains__(self, name: object) -> bool:
        return name in self.quantities

    def __iter__(self) -> Iterator[str]:
        return iter(self.quantities)

    def __len__(self) -> int:
        return len(self.quantities)

    def __or__(self, others: Mapping[str, Array]) -> Fields:
        """Return these and others; of two with one name the other one."""
        more = Fields.of(others)
        first = {name: self._again(name) for name in self.quantities if name not in more.known}
        rest = {name: self._again(name) for name in self.derived if name not in more.known}
        return Fields(
            first | {name: more._again(name) for name in more.quantities},
            rest | {name: more._again(name) for name in more.derived},
        )  # fmt: skip

    def chosen(self, wanted: Sequence[str]) -> Fields:
        """Return some fields alone, in their order; with an empty sequence these themselves.

        Parameters
        ----------
        wanted
            Names, and formulas with a name: ``"cp = (p - 101325) / 500"``, of any fields with one number an element.

        Raises
        ------
        SolverError
            For a name or a formula that is none, or a name twice; says which fields there are.
        """
        found: dict[str, Quantity] = {}
        for text in wanted:
            parts = _FORMULA.fullmatch(text)
            name = text.strip() if parts is None else parts[1]
            if name in found:
                raise SolverError(f"field {name!r} is asked for twice")
            found[name] = self._named(name) if parts is None else self._formula(name, parts[2].strip())
        return Fields(found) if wanted else self

    # ------------------------------------------------------------------------------------- one field
    def _value(self, name: str) -> Array:
        """Return the values of any field."""
        if name not in self._found:
            with np.errstate(all="ignore"):  # of a flow that was lost
                self._found[name] = self.known[name].values()
        return self._found[name]

    def _again(self, name: str) -> Quantity:
        """Return a field whose values are found once, here."""
        old = self.known[name]
        return Quantity(old.unit, old.description, lambda: self._value(name), old.components)

    def _named(self, name: str) -> Quantity:
        known = self.known
        if name not in known:
            there = ", ".join(known) or "none"
            raise SolverError(f"no field {name!r}{did_you_mean(name, known)} (fields: {there}; or NAME = a formula)")
        return self._again(name)

    def _formula(self, name: str, text: str) -> Quantity:
        try:
            expression = Expression(text, tuple(name for name, q in self.known.items() if q.components == 1))
        except CaseError as error:
            raise SolverError(f"field {name}: {error}") from None
        used = tuple(sorted(expression.names))
        if not used:
            raise SolverError(f"field {name}: {expression.shown} has no field in it")
        return Quantity("", text, lambda: Expression(text, used)(*(self._value(one) for one in used)))


def curl(g: Array) -> Array:
    """Return the vorticity of gradients ``(n, d, d)``: ``(n,)`` in the plane, else ``(n, 3)``."""
    if g.shape[1] == 2:
        return g[:, 1, 0] - g[:, 0, 1]
    return np.stack([g[:, 2, 1] - g[:, 1, 2], g[:, 0, 2] - g[:, 2, 0], g[:, 1, 0] - g[:, 0, 1]], axis=1)


def curl_quantities(vorticity: Callable[[], Array], dimension: int, unit: str) -> dict[str, Quantity]:
    """Return the vorticity as fields: its one number in the plane, else its magnitude and ``vorticity_x`` ...

    Parameters
    ----------
    vorticity
        Finds what `curl` returns; called at most once a field.
    dimension
        2 or 3.
    unit
        ``"1/s"``; empty where the solver has none.
    """
    if dimension == 2:
        return {"vorticity": Quantity(unit, "vorticity", vorticity)}
    found = {"vorticity": Quantity(unit, "magnitude of the vorticity", lambda: np.linalg.norm(vorticity(), axis=1))}
    for k, axis in enumerate("xyz"):
        found[f"vorticity_{axis}"] = Quantity(
            unit, f"vorticity along {axis}", lambda k=k: vorticity()[:, k].copy()
        )  # fmt: skip
    return found


def gradient_quantities(gradient: Callable[[], Array], unit: str) -> dict[str, Quantity]:
    """Return ``q_criterion`` and ``divergence`` of what finds gradients ``(n, d, d)``, with ``"1/s"`` or no unit."""

    def q() -> Array:
        """Return ``(|W|^2 - |S|^2) / 2`` of the parts ``(G - G^T) / 2`` and ``(G + G^T) / 2``, ``(n,)``."""
        g = gradient()
        strain, turn = 0.5 * (g + g.transpose(0, 2, 1)), 0.5 * (g - g.transpose(0, 2, 1))
        return 0.5 * ((turn**2).sum(axis=(1, 2)) - (strain**2).sum(axis=(1, 2)))

    return {
        "q_criterion": Quantity(f"{unit}^2" if unit else "", "half of rotation less strain, squared", q),
        "divergence": Quantity(unit, "divergence of the velocity", lambda: np.einsum("nii->n", gradient()).copy()),
    }
