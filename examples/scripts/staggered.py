"""The flow of ../staggered_cavity.toml: a lid-driven cavity on a staggered grid."""

import numpy as np

import fluxloom as fl


def flow(context: fl.Context | None = None) -> fl.Staggered:
    grid = fl.StaggeredGrid((np.arange(65) / 64, np.arange(65) / 64), (False, False))
    walls = {name: fl.NoSlip() for name in ("ymin", "xmin", "xmax")} | {"ymax": fl.NoSlip((1.0, 0.0))}
    return fl.Staggered(grid, context, viscosity=0.001, boundaries=walls, scheme=fl.Wray())


if __name__ == "__main__":
    result = fl.run(flow(), fl.Steady(orders=7, steps=10**6), [fl.History(100)], directory="results/staggered_cavity")
    print(result.status, result.fields["u"].min())
