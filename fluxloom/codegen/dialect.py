"""What differs between the members of the C family, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from fluxloom.core.dtypes import Scalar

__all__ = ["C", "Dialect"]

_REAL_FUNCTIONS = (
    "sqrt cbrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh hypot floor ceil "
    "copysign pow"
).split()


@dataclass(frozen=True)
class Dialect:
    """Spellings of one target language.

    Attributes
    ----------
    name
        Its name.
    real_functions
        Real intrinsics spelled as in ``math.h``; the float32 form has the suffix ``f``.
    prefix
        Prefix of the helper functions of the prelude.
    """

    name: str
    real_functions: frozenset[str]
    helper: Mapping[str, str]

    def function(self, name: str, compute: Scalar) -> str:
        """Return the C name of an intrinsic on reals of the compute type."""
        if name in self.real_functions:
            return name if compute.size == 8 else name + "f"
        return f"{self.helper[name]}_{compute.c}"

    def integer_function(self, name: str) -> str:
        """Return the C name of an intrinsic on integers."""
        return f"{self.helper[name]}_int64_t"


C = Dialect(
    name="c",
    real_functions=frozenset(_REAL_FUNCTIONS),
    helper=MappingProxyType(
        {
            "min": "fl_min",
            "max": "fl_max",
            "abs": "fl_abs",
            "fabs": "fl_abs",
            "sign": "fl_sign",
            "//": "fl_floordiv",
            "%": "fl_mod",
            "isnan": "fl_isnan",
            "isfinite": "fl_isfinite",
            "isinf": "fl_isinf",
        }
    ),
)
