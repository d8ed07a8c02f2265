"""The flow of ../diffusion.toml: heat through a wall of two layers with a rod of steel across the insulation."""

import fluxloom as fl


def layers(wall: float, steel: float, wool: float) -> str:
    return f"where(x < 0.15, {wall}, where(abs(y - 0.1) < 0.005, {steel}, {wool}))"


def flow(context: fl.Context | None = None) -> fl.Diffusion:
    return fl.Diffusion(
        fl.mesh.box2d(60, 40, (0.3, 0.2)), context, conductivity=layers(0.8, 50.0, 0.04),
        capacity=layers(1.4e6, 3.6e6, 4e4), start=20.0, dt=900.0, boundaries={
            "xmin": fl.Convective(7.7, 20.0), "xmax": fl.Convective(25.0, "8 * cos(2 * pi * t / 86400)"),
            "ymin": None, "ymax": None,
        },
    )  # fmt: skip


if __name__ == "__main__":
    result = fl.run(flow(), fl.Time(172800.0), [fl.PatchFlow("xmin")], directory="results/diffusion")
    print(result.time, result.fields["scalar"].min())
