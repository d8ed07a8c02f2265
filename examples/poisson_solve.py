"""Poisson's equation three ways: in one call, with a plan that is used again, and as a preconditioner.

Run it as ``python examples/poisson_solve.py [DEVICE]``.
"""

from __future__ import annotations

import sys

import numpy as np

import fluxloom as fl

CELLS = 128


def main(device: str = "cpu") -> tuple[float, float, float]:
    """Return the largest deflection of a membrane, the flow through a channel, and the mean that was removed."""
    # a square membrane under a load of one: laplacian(u) = -1, u = 0 on the boundary
    plan = fl.poisson.Plan((CELLS, CELLS), 1 / CELLS, bc="dirichlet", device=device)
    membrane = plan(np.full((CELLS, CELLS), -1.0))
    print(f"membrane      largest deflection {membrane.max():.6f} (exact 0.073671)")

    # flow in a channel of aspect 1:2, between walls in two directions, refined towards them; du/dz = 1, viscosity 1
    points = np.linspace(-1, 1, CELLS + 1)
    wall = np.tanh(1.5 * points) / np.tanh(1.5)
    channel = fl.poisson.Plan((CELLS, CELLS), (wall, 2 * wall), bc="dirichlet", device=device)
    speed = channel(np.full((CELLS, CELLS), -1.0))
    flow = float((speed * channel.volumes()).sum())
    print(f"channel       volume flow {flow:.6f} (exact 1.829453)")

    # a pressure between walls: the right-hand side has to have the mean zero, and what is left is taken away
    x = (np.arange(CELLS) + 0.5) / CELLS
    pressure = fl.poisson.Plan((CELLS, CELLS), 1 / CELLS, bc=["periodic", "neumann"], device=device)
    pressure(np.sin(2 * np.pi * x)[:, None] ** 2 * x[None, :] ** 2)
    print(f"pressure      mean removed {pressure.removed:.12f}")
    print(pressure.describe())
    return float(membrane.max()), flow, pressure.removed


if __name__ == "__main__":
    main(*sys.argv[1:])
