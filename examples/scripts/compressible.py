"""The flow of ../naca0012.toml: an airfoil at Mach 0.8, inviscid, towards a steady flow."""

import fluxloom as fl
from fluxloom.mesh.generate.naca import naca_mesh


def flow(context: fl.Context | None = None) -> fl.Compressible:
    return fl.Compressible(
        naca_mesh("0012", 128, 48, reach=20.0), context, scheme=fl.CompressibleScheme(time=fl.RK5()), flux=fl.Roe(),
        boundaries={"airfoil": fl.SlipWall(), "far_field": fl.FarField()}, steps=fl.Explicit(cfl=2.0, local=True),
        stream=fl.FreeStream.at_angles(0.8, 101325.0, 288.15, alpha=1.25, dimension=2),
    )  # fmt: skip


if __name__ == "__main__":
    result = fl.run(flow(), fl.Steady(orders=3, steps=3000), [fl.History(50)], directory="results/naca0012")
    print(result.status, result.fields["mach"].max())
