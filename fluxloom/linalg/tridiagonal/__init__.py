"""Many tridiagonal systems at once: Thomas's algorithm, cyclic reduction and its parallel forms, on every device."""

from fluxloom.linalg.tridiagonal.arrays import solve as solve
from fluxloom.linalg.tridiagonal.form import Form as Form
from fluxloom.linalg.tridiagonal.form import Lines as Lines
from fluxloom.linalg.tridiagonal.matrices import Matrices as Matrices
from fluxloom.linalg.tridiagonal.solver import TridiagonalSolver as TridiagonalSolver
