"""The flow of ../edge_transport.toml: a Gaussian hill that a rotating flow carries round once."""

import numpy as np

import fluxloom as fl


def flow(context: fl.Context | None = None) -> fl.Transport:
    return fl.Transport(
        fl.mesh.box2d(128, 128, (2.0, 2.0), "triangle", origin=(-1.0, -1.0)), context, diffusivity=1e-3,
        velocity=lambda at: np.stack([-at[:, 1], at[:, 0]], axis=1), boundaries=dict.fromkeys(SIDES, 0.0),
        start=lambda at: np.exp(-((at[:, 0] + 0.5) ** 2 + at[:, 1] ** 2) / (2e-3 * np.pi)) / (2e-3 * np.pi**2),
    )  # fmt: skip


SIDES = ("xmin", "xmax", "ymin", "ymax")
if __name__ == "__main__":
    result = fl.run(flow(), fl.Time(2 * np.pi), [fl.History()], directory="results/edge_transport")
    print(result.time, result.fields["scalar"].max())
