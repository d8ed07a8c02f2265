"""The kernel language: ordinary Python functions lowered to a small typed intermediate representation."""

from fluxloom.kernel.analysis import expressions as expressions
from fluxloom.kernel.analysis import map_expressions as map_expressions
from fluxloom.kernel.analysis import used_components as used_components
from fluxloom.kernel.analysis import walk as walk
from fluxloom.kernel.frontend import Func as Func
from fluxloom.kernel.frontend import Kernel as Kernel
from fluxloom.kernel.frontend import func as func
from fluxloom.kernel.frontend import kernel as kernel
