"""Files of a case of lattice Boltzmann flow: fields as image data, and pictures of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fluxloom.flows.lattice_fields import LatticeFields, draw_plane, middle
from fluxloom.flows.lattice_ranks import Pieces, places_of
from fluxloom.flows.lattice_units import Units
from fluxloom.run.image_data import write_image
from fluxloom.run.results.folder import ResultFolder
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["draw_fields", "write_fields"]


def write_fields(
    folder: ResultFolder, name: str, flow: LatticeBoltzmann, units: Units, pieces: Pieces, found: LatticeFields,
    time: float, *, series: bool = False,
) -> None:  # fmt: skip
    """Write fields as image data, of a series or alone: they come together on rank 0 one by one. Collective."""
    parts = {"pressure": found.pressure, "velocity": found.velocity, "vorticity": found.vorticity}
    fields = {name: pieces.whole(values.astype(np.float32)) for name, values in parts.items()}
    known = {name: values for name, values in fields.items() if values is not None}
    if known:
        shown = known | {"fluid": flow.fluid}

        def put(path: Path) -> None:
            write_image(path, shown, origin=units.lower, spacing=units.dx, time=time)

        if series:
            folder.write_at(time, name, put)
        else:
            folder.write(name, put)


def draw_fields(
    folder: ResultFolder, flow: LatticeBoltzmann, units: Units, pieces: Pieces, found: LatticeFields, text: str
) -> None:
    """Draw speed and vorticity, of a volume in its middle planes. Collective.

    Parameters
    ----------
    text
        Behind the name of the field in titles.
    """
    flat = units.dimension == 2
    for field, values in (("speed", found.speed), ("vorticity", found.vorticity)):
        for across, axes in (("z", ("x", "y")),) if flat else (("z", ("x", "y")), ("y", ("x", "z"))):
            name = f"{field}.png" if flat else f"{field}_{across}.png"
            places = None if flat else places_of(flow.box.shape, across="zyx".index(across))
            shown, fluid = pieces.whole(values, places), middle(flow.fluid, across)
            if shown is not None:
                plane, title = shown.reshape(fluid.shape), f"{field.capitalize()}: {text}"
                with folder.attempt(name):
                    signed = flat and field == "vorticity"
                    draw_plane(folder / name, plane, fluid, units, title, field, axes, signed=signed)
