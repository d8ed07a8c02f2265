"""Slow flow through spheres in a cubic array: drag and permeability against Zick and Homsy (1982).

The box is one cell of the array, joined along all axes, and a force drives the fluid. Up to half of the box is solid;
only the fluid cells are stored (``FluidCells()``), with one copy of the populations. With a force ``g`` per volume and
the mean velocity ``U`` over the whole box of side ``L`` the drag coefficient of spheres of radius ``a`` and the
permeability are

    K = g L^3 / (6 pi nu a U),        k = nu U / g.

A. A. Zick, G. M. Homsy, *Journal of Fluid Mechanics* 115 (1982) 13-26, table 2.

Run it as ``python examples/lattice_porous.py [DEVICE [CELLS [PICTURE.png]]]``.
"""

from __future__ import annotations

import sys
from math import cbrt, pi

import numpy as np
import numpy.typing as npt

import fluxloom as fl
from fluxloom.lbm.boundaries import Body, Wall
from fluxloom.lbm.collisions.operators import TRT
from fluxloom.lbm.shapes.shapes import Sphere
from fluxloom.lbm.streaming.memory import FluidCells
from fluxloom.lbm.streaming.schemes import InPlace
from fluxloom.solvers.lattice.flow import LatticeBoltzmann

DRAG = {0.216: 7.442, 0.343: 15.4, 0.45: 28.1, 0.5236: 42.1}
"""Drag coefficient by the share of the box that is solid; at 0.5236 the spheres touch."""

VISCOSITY, REYNOLDS = 1 / 6, 0.01


def flow_through(context: fl.Context, solid: float, cells: int) -> tuple[LatticeBoltzmann, float]:
    """Return a flow at its start, and its force per volume: one that leaves the Reynolds number about `REYNOLDS`."""
    radius = cells * cbrt(3 * solid / (4 * pi))
    speed = REYNOLDS * VISCOSITY / (2 * radius)
    force = 6 * pi * VISCOSITY * radius * DRAG[solid] * speed / cells**3
    middle = (0.5 * cells - 0.5,) * 3
    flow = LatticeBoltzmann(
        context, (cells,) * 3, viscosity=VISCOSITY, collision=TRT(), streaming=InPlace(), cells=FluidCells(),
        force=(0.0, 0.0, force), bodies=[Body("sphere", Sphere(middle, radius), Wall(interpolated=True, measure=True))],
    )  # fmt: skip
    flow.initialise()
    return flow, force


def settle(flow: LatticeBoltzmann, most: int = 5000) -> npt.NDArray[np.float64]:
    """Return the velocity along x once its mean has changed by less than a hundred-thousandth in fifty steps."""
    before = 0.0
    while True:
        flow.step(50)
        u = flow.velocity()[..., -1]
        mean = float(u.mean(dtype=np.float64))
        if abs(mean - before) < 1e-5 * abs(mean) or flow.steps >= most:
            return u
        before = mean


def main(device: str = "cpu", cells: str = "32", picture: str = "") -> float:
    """Return the largest relative error of the drag coefficients."""
    context, n, worst = fl.Context(device), int(cells), 0.0
    fields = []
    print("  solid   stored    steps    K        Zick, Homsy   error      permeability")
    for solid, known in DRAG.items():
        flow, force = flow_through(context, solid, n)
        u = settle(flow)
        mean, radius = float(u.mean(dtype=np.float64)), n * cbrt(3 * solid / (4 * pi))
        drag = force * n**3 / (6 * pi * VISCOSITY * radius * mean)
        error = drag / known - 1
        worst = max(worst, abs(error))
        print(
            f"  {solid:<6}  {100 * flow.cells / n**3:5.1f} %  {flow.steps:6d}    {drag:<8.3f} {known:<12}  "
            f"{100 * error:+.2f} %    {VISCOSITY * mean / force / n**2:.3e} L^2"
        )
        fields.append((solid, u[n // 2] / mean))
    if picture:
        draw(fields, picture)
    return worst


def draw(fields: list[tuple[float, npt.NDArray[np.float64]]], picture: str) -> None:
    """Draw the velocity along x in the middle plane, two cells of the array along each axis."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(fields), figsize=(3.1 * len(fields), 3.3), layout="constrained")
    for axis, (solid, u) in zip(axes, fields, strict=True):
        shown = axis.imshow(
            np.tile(np.ma.masked_equal(u, 0.0), (2, 2)), origin="lower", cmap="viridis", interpolation="nearest"
        )
        axis.set_title(f"solid {solid}")
        axis.set_facecolor("0.7")
        axis.set_xticks([])
        axis.set_yticks([])
        figure.colorbar(shown, ax=axis, shrink=0.75, label="u / U")
    figure.savefig(picture, dpi=110)
    pyplot.close(figure)
    print(f"picture {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:])
