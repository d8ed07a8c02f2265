"""The flow of ../tsunami.toml: the sea floor rises, and the wave meets an island and a beach."""

import numpy as np

import fluxloom as fl
from fluxloom.monitors.gauges import Gauges

GAUGES = {"offshore": (9e3, 8e3), "lee": (16.5e3, 8e3), "beach": (21.5e3, 8e3)}


def flow(context: fl.Context | None = None) -> fl.ShallowWater:
    shore = {name: fl.Incident(0.0) for name in ("xmin", "ymin", "ymax")}
    rise = fl.Event(0.0, lambda x, y: 2.5 * np.exp(-(((x - 5e3) / 1.2e3) ** 2) - ((y - 7.5e3) / 3.6e3) ** 2))
    plan = fl.Plan(480.0, 48, GAUGES, events=(rise,))
    return fl.ShallowWater(fl.mesh.box2d(120, 80, (24e3, 16e3), "triangle", perturb=0.2), context, plan=plan, bed=bed,
                           boundaries=shore, scheme=fl.ShallowScheme(manning=0.025))  # fmt: skip


def bed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.maximum(-100, 0.0095 * (x - 12e3) - 100) + 105 * np.exp(-((x - 13e3) ** 2 + (y - 8e3) ** 2) / 1.8e3**2)


if __name__ == "__main__":
    print(*fl.run(flow(), fl.Time(480.0), [Gauges(GAUGES, 5.0)], directory="results/tsunami").summary, sep="\n")
