"""The flow of ../cavity.toml: a lid-driven cavity in finite volumes."""

import fluxloom as fl


def flow(context: fl.Context | None = None) -> fl.Incompressible:
    walls = {name: fl.NoSlip() for name in ("ymin", "xmin", "xmax")}
    return fl.Incompressible(
        fl.mesh.box2d(48, 48), context, viscosity=0.01, boundaries=walls | {"ymax": fl.NoSlip((1.0, 0.0))},
        steps=fl.StepLengths(dt=0.005),
    )  # fmt: skip


if __name__ == "__main__":
    result = fl.run(flow(), fl.Steps(4000), [fl.History()], directory="results/cavity")
    print(result.time, result.fields["u"].min())
