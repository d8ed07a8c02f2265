"""Outflow: sides that let the flow leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fluxloom.core.access import RW, Const, Inc, Read, Write
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.lbm.boundaries.link_kernels import copy
from fluxloom.lbm.boundaries.part import Part, Site
from fluxloom.lbm.streaming.space import Space

__all__ = ["Outflow"]


@dataclass(frozen=True)
class Outflow:
    r"""A side through which the flow leaves, whatever it brings.

    What arrives at a cell :math:`x` of the side is carried out of the box with a speed :math:`U`, implicitly, so that
    no speed is too high:

    .. math:: \partial_t f_i + U \partial_n f_i = 0: \qquad
       f_i(x, t) = \frac{f_i(x, t-1) + U f_i(x - n, t)}{1 + U} + w_i K (\rho_0 - \bar\rho)

    (I. Orlanski, *Journal of Computational Physics* 21 (1976) 251; Q. Lou, Z. Guo, B. Shi, *Physical Review E* 87
    (2013) 063301, eqs. 11 and 14). With :math:`U = \infty` it is a copy: no gradient.

    Nothing of that holds the pressure. The last term does, as T. J. Poinsot and S. K. Lele (*Journal of Computational
    Physics* 101 (1992) 104, section 3.3) do: it draws the mean density :math:`\bar\rho` at the side back, slowly enough
    to leave waves alone. Without it and with a velocity set at the other end the density drifts, fast where walls ask
    for a pressure that falls towards the side.

    Attributes
    ----------
    speed
        :math:`U`, cells a step; `math.inf` for a copy. None: the mean velocity out of the side, measured in every
        step (nothing is carried while it is not positive).
    density
        :math:`\rho_0`, to which the mean is drawn; None: it is free.
    rate
        :math:`K`, a step. More than 0.05 or so may make waves grow.

    Raises
    ------
    SolverError
        For a speed, a density or a rate that is not positive.
    """

    speed: float | None = None
    density: float | None = 1.0
    rate: float = 0.01
    order = 3
    stage = 3

    def __post_init__(self) -> None:
        for name, value in (("speed", self.speed), ("density", self.density), ("rate", self.rate)):
            if value is not None and not value > 0:
                raise SolverError(f"Outflow({name}={value!r}): it must be positive")
        if not self.rate < 1:
            raise SolverError(f"Outflow(rate={self.rate!r}): a share of the difference each step is wanted, about 0.01")

    def part(self, space: Space, site: Site) -> Part:
        """Return what runs before every step."""
        axis, outward = site.side()
        if not len(site.links):
            return Part(site.name, [()], links=0)
        links = site.links[space.order(site.links.cells, site.links.directions)]
        cells, directions = links.cells, links.directions
        inner = space.box.inwards(cells, axis, outward)
        if not np.all(site.is_fluid(inner)):
            raise SolverError(f"{site.name}: an Outflow needs two cells of fluid along its normal; move the body away")
        over = space.elements(cells, f"{site.name} links")
        cells, directions, inner = over.cells, directions[over.which], inner[over.which]
        sources = space.arriving(over, inner, directions, f"{site.name} inner")
        backs = space.arriving(over, cells, directions, f"{site.name} back")
        weights = space.unit * np.array(space.lattice.weights)[directions]
        weight = space.context.dat(over.set, weights[:, None], f"{site.name} weights", dtype=space.real)
        target = 0.0 if self.density is None else self.density - 1.0
        drawn: dict[str, Any] = {
            "keep": 0.0 if self.speed is None else 1.0 / (1.0 + self.speed), "follow": float(self.speed is None),
            "target": target, "rate": 0.0 if self.density is None else self.rate,
        }  # fmt: skip
        memory = space.context.dat(over.set, name=f"{site.name} memory", shape=(1,), dtype=space.real)
        mean, measures = self._means(space, site, axis, outward)
        steps = [
            [*measure, Loop(convect, over.set, a, mean, weight, memory, b, name=f"{site.name} outflow", **drawn)]
            for measure, a, b in zip(measures, sources, backs, strict=True)
        ]
        begin = [[Loop(copy, over.set, a, memory, name=f"{site.name} begin")] for a in sources]
        return Part(site.name, steps, links=len(links), begin=begin, state=(memory,))

    def _means(self, space: Space, site: Site, axis: int, outward: int) -> tuple[Global, list[list[Loop | Reset]]]:
        """Return the speed and the mean of ``rho - 1``, and for each parity what measures them."""
        mean = space.context.scalar(np.zeros(2), f"{site.name} means", dtype=space.total)
        if self.speed is not None and self.density is None:
            return mean, [[] for _ in space.parities]
        cells = site.cells if len(site.cells) else np.unique(site.links.cells)
        over = space.elements(cells, f"{site.name} cells")
        tables: dict[str, Any] = {
            "along": [outward * c[axis] for c in space.lattice.velocities],
            "share": 1.0 / len(cells), "unit": space.unit,
        }  # fmt: skip
        seen = space.departed(over, over.cells[:, None], np.arange(space.lattice.q)[None, :], f"{site.name} out")
        return mean, [[Reset(mean), Loop(means, over.set, f, mean, name=f"{site.name} means", **tables)] for f in seen]


@kernel
def means(f: Read, mean: Inc, *, along: Const[list[int]], share: float, unit: Const[float]):
    """``mean += (n . J / (U + A), A / U) / N``: the mean velocity out of the side, and ``rho - 1``.

    ``share = 1 / N`` cells.
    """
    total = 0.0
    momentum = 0.0
    for k in range(len(along)):
        total += f[k]
        if along[k] != 0:
            momentum += along[k] * f[k]
    mean[0] += share * momentum / (unit + total)
    mean[1] += share * total / unit


@kernel
def convect(
    inner: Read, mean: Read, weight: Read, memory: RW, back: Write,
    *, keep: float, follow: float, target: float, rate: float,
):  # fmt: skip
    """``f_i(x, t) = f_i(x - n, t) + s (f_i(x, t-1) - f_i(x - n, t)) + w_i K (rho_0 - mean rho)``, ``s = 1 / (1 + U)``.

    ``keep`` is ``s`` of a speed that is given, ``follow`` 1 where it is the one that was measured; none below 0.
    """
    share = keep + follow / (1.0 + max(mean[0], 0.0))
    value = inner[0] + share * (memory[0] - inner[0]) + weight[0] * rate * (target - mean[1])
    memory[0] = value
    back[0] = value
