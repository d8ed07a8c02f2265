"""The flow of ../edge_cavity.toml: a lid-driven cavity in finite elements, towards a steady flow."""

import fluxloom as fl
from fluxloom.mesh.generate.boxes import clustered


def flow(context: fl.Context | None = None) -> fl.EdgeFlow:
    axis, walls = clustered(1.0), {name: fl.NoSlip() for name in ("ymin", "xmin", "xmax")}
    return fl.EdgeFlow(
        fl.mesh.box2d(32, 32, kind="triangle", axes=(axis, axis)), context, viscosity=0.01,
        boundaries=walls | {"ymax": fl.NoSlip((1.0, 0.0))}, stop=fl.Stop(rtol=1e-4),
        scheme=fl.EdgeScheme(dynamic=0.0, viscous=8.0, convective=8.0, subscales=fl.Tracked()),
        preconditioner=fl.SmoothedAggregation(),
    )  # fmt: skip


if __name__ == "__main__":
    result = fl.run(flow(), fl.Steady(orders=5), [fl.History()], directory="results/edge_cavity")
    print(result.status, result.fields["u"].min())
