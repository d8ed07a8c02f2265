r"""The states of some cycles towards a steady flow, mixed such that their residual is least.

Cycles of multigrid leave some kinds of errors nearly as they are: shear in layers of thin cells far from walls, which
no coarse level knows. With the changes :math:`\delta w_i` of the states and :math:`\delta R_i` of the residuals from
one cycle to the next, those of the last few, the states after a cycle become

.. math:: w - \sum_i \gamma_i \delta w_i, \quad \gamma = \arg\min \Big| R - \sum_i \gamma_i \delta R_i \Big|,

provided that their residual is less than before; else changes are forgotten. Where cycles are linear that is GMRES,
preconditioned with a cycle.

References
----------
T. Washio, C. W. Oosterlee: *Krylov subspace acceleration for nonlinear multigrid schemes*. Electron. Trans. Numer.
Anal. 6, 1997.
H. F. Walker, P. Ni: *Anderson acceleration for fixed-point iterations*. SIAM J. Numer. Anal. 49, 2011 (least squares by
differences).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.implicit import clear
from fluxloom.fv.compressible.mixing_kernels import changes, mixed, products
from fluxloom.fv.compressible.multigrid import stepped
from fluxloom.linalg.vectors import copy
from fluxloom.solvers.compressible.flow import CompressibleFlow

__all__ = ["Mixing"]

Array = npt.NDArray[np.float64]

_GROUP = 4
_CHANGE = 0.3
"""Part of themselves by which density and pressure change at most."""
_SMALL = 1e-12
"""Eigenvalues of the products of changes below this part of the largest one are noise."""


class Mixing:
    """Mixes the states of a flow after its cycles; see the module.

    Parameters
    ----------
    flow
        Whose states.
    count
        Cycles whose changes are kept; rounded up to a multiple of four.
    measure
        Finds the residual of the states of the flow now, and returns its norm. Collective.

    Attributes
    ----------
    taken
        How often mixed states had less of a residual.
    """

    remembers = ("taken", "_noted", "_matrix", "_right")

    def __init__(self, flow: CompressibleFlow, count: int, measure: Callable[[], float]) -> None:
        self.flow, self._measure = flow, measure
        context, over, nv = flow.context, flow.elements, flow.components
        self._count = _GROUP * -(-count // _GROUP)
        self._rows = context.scalar(np.ones(nv), "rows")

        def dat(name: str) -> Dat:
            return context.dat(over, name=name, shape=(nv,), layout=flow.w.layout)

        dw, dr = ([dat(f"{name}{k}") for k in range(self._count)] for name in ("dw", "dr"))
        last_w, last_r, z, kept = (dat(name) for name in ("last_w", "last_r", "mixed", "unmixed"))
        groups = [slice(k, k + _GROUP) for k in range(0, self._count, _GROUP)]
        self._found = [context.scalar(np.zeros(2 * _GROUP), "products") for _ in groups]
        self._parts = [context.scalar(np.zeros(_GROUP), "parts") for _ in groups]
        self._notes = [
            Chain([
                Loop(changes, over, flow.w, flow.res, self._rows, last_w, last_r, dw[k], dr[k], nv=nv),
                *(Reset(found) for found in self._found),
                *(Loop(products, over, *dr[group], dr[k], last_r, found, nv=nv)
                  for group, found in zip(groups, self._found, strict=True)),
            ], fuse=False, name="mixing.note")
            for k in range(self._count)
        ]  # fmt: skip
        self._mix = Chain([
            Loop(clear, over, z, nv=nv),
            *(Loop(mixed, over, *dw[group], part, z, nv=nv) for group, part in zip(groups, self._parts, strict=True)),
            Loop(copy, over, flow.w, kept, systems=nv),
            Loop(stepped, over, kept, z, flow.w, most=_CHANGE, nv=nv, d=flow.dimension),
        ], fuse=False, name="mixing.mix")  # fmt: skip
        self._restore = Loop(copy, over, kept, flow.w, systems=nv)
        self._matrix, self._right = np.zeros((self._count, self._count)), np.zeros(self._count)
        self.taken = 0
        self.forget()

    def forget(self) -> None:
        """Begin anew: what changed so far does not count."""
        self._noted = -1

    def weigh(self, rows: Array) -> None:
        """Take what residuals are multiplied with, ``(nv,)``."""
        self._rows.value = rows

    def step(self, total: float) -> float:
        """Mix, when the residual of the states now has just been found, with this norm; return the norm then."""
        slot = self._noted % self._count
        self._notes[slot]()
        first, self._noted = self._noted < 0, self._noted + 1
        if first:
            return total
        found = np.array([np.asarray(part.value) for part in self._found])
        self._matrix[slot] = self._matrix[:, slot] = found[:, :_GROUP].ravel()
        self._right = found[:, _GROUP:].ravel()
        self._solve()
        self._mix()
        least = self._measure()
        if least < total:
            self.taken += 1
            return least
        self._restore()
        self.forget()
        return self._measure()

    def _solve(self) -> None:
        """Find the parts of the changes that count."""
        live = min(self._noted, self._count)
        sizes = np.sqrt(np.maximum(np.diag(self._matrix)[:live], 1e-300))
        scaled = self._matrix[:live, :live] / np.outer(sizes, sizes)
        values, vectors = np.linalg.eigh(scaled)
        kept = values > _SMALL * values[-1]
        inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
        part = np.zeros(self._count)
        part[:live] = vectors @ (inverse * (vectors.T @ (self._right[:live] / sizes))) / sizes
        for k, found in enumerate(self._parts):
            found.value = part[_GROUP * k : _GROUP * (k + 1)]
