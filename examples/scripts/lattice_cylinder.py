"""The flow of ../lattice_cylinder.toml: vortices behind a cylinder at Reynolds number 100, by lattice Boltzmann."""

import fluxloom as fl
from fluxloom.flows.lattice.given.bodies import Body
from fluxloom.flows.lattice.given.shapes import Ball
from fluxloom.flows.lattice.given.sides import Inflow, Outflow, Slip
from fluxloom.flows.lattice.given.start import Start
from fluxloom.flows.lattice.given.units import Units


def flow(context: fl.Context | None = None) -> fl.Lattice:
    sides = {"xmin": Inflow((1.0, 0.0)), "xmax": Outflow(), "ymin": Slip(), "ymax": Slip()}
    cylinder, units = Body(Ball((6.0, 6.05), 1.0)), Units.of(0.1, reynolds=100, lattice_velocity=0.1)
    start = Start((1.0, 0.0))
    return fl.Lattice((240, 120), units, context, boundaries=sides, bodies={"cylinder": cylinder}, start=start)


if __name__ == "__main__":
    forces = fl.Forces("cylinder", reference=fl.Reference(speed=1.0))
    result = fl.run(flow(), fl.Time(60.0), [forces, fl.History(20)], directory="results/lattice_cylinder")
    print(result, result.forces["cylinder"].cd, sep="\n")
