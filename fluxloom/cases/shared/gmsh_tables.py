"""The tables ``[mesh.gmsh]`` of cases of flow: one for each shape that Gmsh fills with simplices."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fluxloom.cases.files.strategy_tables import strategy_table
from fluxloom.mesh.generate.gmsh_mesh import GmshBody, GmshBox, GmshCylinder, GmshStep

__all__ = ["GmshTable"]


class GmshBoxTable(strategy_table(GmshBox)):
    """``shape = "box"``: see `fluxloom.mesh.generate.gmsh_shapes.GmshBox`, whose names and defaults it has."""

    shape: Literal["box"]


class GmshCylinderTable(strategy_table(GmshCylinder)):
    """``shape = "cylinder"``: see `fluxloom.mesh.generate.gmsh_channels.GmshCylinder`."""

    shape: Literal["cylinder"]


class GmshStepTable(strategy_table(GmshStep)):
    """``shape = "step"``: see `fluxloom.mesh.generate.gmsh_channels.GmshStep`."""

    shape: Literal["step"]


class GmshBodyTable(strategy_table(GmshBody)):
    """``shape = "body"``: see `fluxloom.mesh.generate.gmsh_body.GmshBody`; boxes are ``[[mesh.gmsh.refine]]``."""

    shape: Literal["body"]


GmshTable = Annotated[
    GmshBoxTable | GmshCylinderTable | GmshStepTable | GmshBodyTable,
    Field(discriminator="shape"),
]
"""``[mesh.gmsh]``: its ``shape`` says which keys it has."""
