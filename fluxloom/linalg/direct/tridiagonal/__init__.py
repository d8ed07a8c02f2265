"""Many tridiagonal systems at once: Thomas's algorithm, cyclic reduction and its parallel forms, on every device.

Read `solver`, `form` (what is given) and `methods` (which there are, which one is taken) first. Functions for
processors begin with `plain_thomas` and `plain_cyclic`, kernels for GPUs with `kernels_thomas`, `kernels_cyclic` and
`partition`; `chunks` takes lines of any length, `ranks` lines that are divided, `arrays` arrays of others.
"""

from fluxloom.linalg.direct.tridiagonal.arrays import solve as solve
from fluxloom.linalg.direct.tridiagonal.form import Form as Form
from fluxloom.linalg.direct.tridiagonal.form import Lines as Lines
from fluxloom.linalg.direct.tridiagonal.matrices import Matrices as Matrices
from fluxloom.linalg.direct.tridiagonal.solver import TridiagonalSolver as TridiagonalSolver
