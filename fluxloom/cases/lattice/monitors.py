"""What a case of lattice Boltzmann flow looks at while it runs: forces, probes, films, files of the fields."""

from __future__ import annotations

import numpy as np

from fluxloom.cases.lattice.tables import LatticeCase
from fluxloom.cases.shared.monitors import ForcesTable, References, common_monitors
from fluxloom.flows.lattice.files import LatticeImages
from fluxloom.flows.lattice.flow import Lattice
from fluxloom.flows.lattice.given.units import Units
from fluxloom.monitors.forces import Reference
from fluxloom.run.monitor import Monitor

__all__ = ["lattice_monitors"]


def lattice_monitors(case: LatticeCase, flow: Lattice) -> list[Monitor]:
    """Return what looks at a flow."""
    images = LatticeImages(case.output.every, final=case.output.image)
    return common_monitors(case, references_in(flow.units), others=[images])


def references_in(units: Units) -> References:
    """Return what coefficients refer to: by default velocity and length of the case, in space a circle's area."""

    def found(table: ForcesTable) -> Reference:
        """Return what the table says, the rest from the units of the case: m/s, m^2, m, kg/m^3."""
        length = table.length or units.length
        area = table.area or (length if units.dimension == 2 else 0.25 * np.pi * length**2)
        drag, lift = table.drag or Reference.drag, table.lift or Reference.lift
        return Reference(table.speed or units.velocity, area, length, units.density, drag, lift)

    return found
