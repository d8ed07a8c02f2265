"""A two-dimensional Taylor-Green vortex decays; its rate gives back the viscosity that was set.

Run it as ``python examples/taylor_green_lattice.py [DEVICE]``.
"""

from __future__ import annotations

import sys
from math import log, pi

import numpy as np

import fluxloom as fl
from fluxloom.lbm.lattices import D2Q9
from fluxloom.solvers.lattice.flow import LatticeBoltzmann

CELLS, VISCOSITY, SPEED, STEPS = 64, 0.05, 0.02, 1000


def main(device: str = "cpu") -> float:
    """Return the measured viscosity, in cells squared a step."""
    k = 2 * pi / CELLS
    y, x = np.meshgrid(k * np.arange(CELLS), k * np.arange(CELLS), indexing="ij")
    density = 1 - 0.75 * SPEED**2 * (np.cos(2 * x) + np.cos(2 * y))
    velocity = np.stack([SPEED * np.sin(x) * np.cos(y), -SPEED * np.cos(x) * np.sin(y)], axis=-1)  # along y, x

    flow = LatticeBoltzmann(
        fl.Context(device), (CELLS, CELLS), viscosity=VISCOSITY, lattice=D2Q9, dtype="float64"
    )  # fmt: skip
    flow.initialise(density, velocity)
    flow.step(100)  # the stresses settle
    before = flow.kinetic_energy()
    flow.step(STEPS)
    after = flow.kinetic_energy()

    measured = log(before / after) / (4 * k * k * STEPS)  # the energy decays as exp(-4 nu k^2 t)
    print(f"kinetic energy {before:.6e} -> {after:.6e} in {STEPS} steps")
    print(f"viscosity      {measured:.8f}, set {VISCOSITY} ({100 * (measured / VISCOSITY - 1):+.3f} %)")
    return measured


if __name__ == "__main__":
    main(*sys.argv[1:])
