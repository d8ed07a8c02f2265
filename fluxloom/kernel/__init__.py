"""The kernel language: ordinary Python functions lowered to a small typed intermediate representation.

Read `frontend` (what the decorators return) first, then `reading` (from Python's tree), `ir` (what a kernel is then)
and `lowering` (types, constants, helpers), `intrinsics` (functions that kernels may call). The decorators are light;
what reads, checks and lowers is imported when the first kernel is read.
"""

from typing import TYPE_CHECKING, Any

from fluxloom.kernel.frontend import Func as Func
from fluxloom.kernel.frontend import Kernel as Kernel
from fluxloom.kernel.frontend import func as func
from fluxloom.kernel.frontend import kernel as kernel

if TYPE_CHECKING:
    from fluxloom.kernel.analysis import expressions as expressions
    from fluxloom.kernel.analysis import map_expressions as map_expressions
    from fluxloom.kernel.analysis import used_components as used_components
    from fluxloom.kernel.analysis import walk as walk


def __getattr__(name: str) -> Any:
    """Import the walks over the intermediate representation when one is first asked for."""
    if name not in ("expressions", "map_expressions", "used_components", "walk"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fluxloom.kernel import analysis

    return getattr(analysis, name)
