"""The flow of ../airfoil_small.toml: the Airfoil benchmark on a coarse mesh."""

import fluxloom as fl


def flow(context: fl.Context | None = None) -> fl.Airfoil:
    return fl.Airfoil((60, 90), context)


if __name__ == "__main__":
    result = fl.run(flow(), fl.Steps(1000), directory="results/airfoil_small")
    print(result.residuals[-1], result.fields["pressure"].max())
