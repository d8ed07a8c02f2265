"""Sponge: a layer of cells along a side in which waves and vortices fade."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fluxloom.core.access import RW, Const, Read
from fluxloom.core.dtypes import SoA
from fluxloom.core.errors import SolverError
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.boundaries.cell_kernels import in_equilibrium, load, moments
from fluxloom.lbm.boundaries.hydrostatics import Densities
from fluxloom.lbm.boundaries.part import Condition, Part, Site
from fluxloom.lbm.boundaries.side import cell_places, pull_at
from fluxloom.lbm.boundaries.values import Scalars, Vectors, speeds_at
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.streaming.space import Space

__all__ = ["Sponge"]


@dataclass(frozen=True)
class Sponge:
    r"""A condition at a side, and a layer of cells along it that draws the flow to a known state.

    .. math:: f_i \leftarrow f_i + f_i^{eq}(\rho', u') - f_i^{eq}(\rho, u), \qquad
       \rho' = \rho + \sigma (\rho_0 - \rho), \quad u' = u + \sigma (u_0 - u), \qquad
       \sigma = s \Bigl(1 - \frac{d}{w}\Bigr)^2

    at the distance :math:`d` from the side, before every step; stresses stay as they are (absorbing layers: H. Xu,
    P. Sagaut, *Journal of Computational Physics* 245 (2013) 14). A wave that crosses the layer, comes back and crosses
    it again is left with :math:`e^{-2 \sqrt 3 s w / 3}` of its size or so. Without a velocity it is the root of that,
    and next to a side that holds the pressure hardly anything is taken. The layer is no part of the flow that one wants
    to know: it takes mass and momentum.

    Attributes
    ----------
    beside
        The condition of the side itself.
    width
        :math:`w`, cells.
    strength
        :math:`s`, the share of the distance that is made good in a step at the side itself.
    density
        :math:`\rho_0`: a number, or as `Pressure` takes it.
    velocity
        :math:`u_0`, as `Velocity` takes it; vortices fade only towards a velocity. None: it is left as it is.

    Raises
    ------
    SolverError
        For a width or a strength out of range.
    """

    beside: Condition
    width: float
    strength: float = 0.1
    density: Scalars = 1.0
    velocity: Vectors | None = None

    def __post_init__(self) -> None:
        if isinstance(self.beside, Sponge):
            raise SolverError("Sponge(Sponge(...)): a side has one sponge; give a wider one")
        if not 1 <= self.width < float("inf"):
            raise SolverError(f"Sponge(width={self.width!r}): one cell or more is wanted, as 30")
        if not 0 < self.strength <= 1:
            raise SolverError(f"Sponge(strength={self.strength!r}): a share between 0 and 1 is wanted, as 0.1")

    def layer(self, space: Space, site: Site) -> Part:
        """Return what runs before every step, before all conditions.

        Raises
        ------
        SolverError
            If the box is not wider than the layer, or values do not fit.
        """
        axis, outward = site.side()
        across = space.box.shape[axis]
        if not self.width < across:
            raise SolverError(f"{site.name}: a sponge of {self.width:g} cells in a box of {across} across; narrow it")
        name = f"{site.name} sponge"
        cells = np.flatnonzero(site.labels.reshape(-1) == 0).astype(np.int64)
        at = space.box.coordinates(cells)[axis]
        cells = cells[(at < across) & (self._away(at, across, outward) < self.width)]
        over = space.elements(cells, f"{name} cells")
        places = cell_places(space, replace(site, name=name, cells=over.cells))
        away = self._away(space.box.coordinates(over.cells)[axis], across, outward)
        share = self.strength * (1.0 - away / self.width) ** 2
        make, d = space.context.dat, space.lattice.dimensions
        shares = make(over.set, share[:, None], f"{name} share", dtype=space.real)
        above = make(over.set, name=f"{name} density", shape=(1,), dtype=space.real)
        densities = Densities(space, site, places, above, self.density)
        wanted = np.zeros((over.set.size, d)) if self.velocity is None else speeds_at(self.velocity, places)
        u = make(over.set, wanted, f"{name} velocity", dtype=space.real, layout=SoA())
        constants: dict[str, Any] = space.constants | {"follow": self.velocity is not None}
        every = np.arange(space.lattice.q)[None, :]
        pull = pull_at(space, over, name)
        steps = [
            [Loop(draw, over.set, f, shares, above, u, pull, name=name, **constants)]
            for f in space.departed(over, over.cells[:, None], every, f"{name} out")
        ]
        return Part(name, steps, links=0, begin=((),), carry=densities.carry)

    @staticmethod
    def _away(at: Any, across: int, outward: int) -> Any:
        """Return the distances of cells from the side."""
        return 0.5 + (at if outward < 0 else across - 1 - at)


@kernel
def draw(
    f: RW, share: Read, above: Read, u: Read, pull: Read,
    *, lattice: Const[Lattice], follow: Const[bool], unit: Const[float],
):  # fmt: skip
    """``f_k += f_k^eq(rho', u') - f_k^eq(rho, u)``, ``rho' = rho + sigma (rho_0 - rho)``, ``u' = u + sigma (u_0 - u)``.

    Of what left a cell; ``u' = u`` where there is no velocity to follow.
    """
    g = zeros(lattice.q)
    here = zeros(lattice.dimensions)
    there = zeros(lattice.dimensions)
    load(f, g, unit)
    over = moments(g, pull, here, lattice, -0.5)
    value = over + share[0] * (above[0] - over)
    for a in range(len(here)):
        there[a] = here[a] + share[0] * (u[a] - here[a]) if follow else here[a]
    for k in range(lattice.q):
        new = in_equilibrium(lattice.velocities[k], lattice.weights[k], value, there)
        old = in_equilibrium(lattice.velocities[k], lattice.weights[k], over, here)
        f[k] = unit * (g[k] + (new - old))
