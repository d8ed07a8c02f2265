"""The lid-driven cavity of tetrahedra as a case of Kratos Multiphysics: its mesh, parameters and materials as text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.data.ragged import IntArray
from fluxloom_lab.problems.tetra_cavity import TetraCavity

__all__ = ["MODEL", "PRESSURE_SOLVERS", "KratosCase"]

Settings = Mapping[str, Any]
Numbers = npt.NDArray[np.integer]

MODEL = "Cavity"
"""Name of the model part that holds all."""

_AMGCL: Settings = {
    "solver_type": "amgcl", "smoother_type": "ilu0", "coarsening_type": "aggregation", "scaling": True,
    "use_block_matrices_if_possible": False, "provide_coordinates": False,
}  # fmt: skip
PRESSURE_SOLVERS: dict[str, Settings] = {
    "amgcl": {**_AMGCL, "krylov_type": "cg", "max_iteration": 200, "verbosity": 3},
    "cg, diagonal": {"solver_type": "cg", "preconditioner_type": "diagonal", "max_iteration": 5000},
}
"""Solvers for the pressure by name.

``amgcl``: conjugate gradients with aggregation multigrid and ILU(0), the defaults of Kratos' fractional-step solver
(``GetDefaultParameters`` in its ``navier_stokes_solver_fractionalstep.py``, 10.4.4). ``cg, diagonal``: its conjugate
gradients with diagonal scaling.
"""

_VELOCITY: Settings = {
    **_AMGCL, "krylov_type": "lgmres", "gmres_krylov_space_dimension": 100, "max_iteration": 200, "tolerance": 1e-6,
    "verbosity": 0,
}  # fmt: skip


@dataclass(frozen=True)
class KratosCase:
    """A cavity for Kratos' ``FractionalStep`` element on tetrahedra, steps of second order backward in time.

    Attributes
    ----------
    cavity
        The mesh, and which of its points move, rest, or hold the pressure.
    viscosity
        Kinematic; the density is 1.
    dt, steps
        Length and number of the steps.
    pressure
        A key of `PRESSURE_SOLVERS`.
    tolerance
        Of each pressure solve, relative to the right-hand side.
    """

    cavity: TetraCavity
    viscosity: float
    dt: float
    steps: int
    pressure: str
    tolerance: float

    @property
    def most_iterations(self) -> int:
        """Iterations at which the pressure solver gives up."""
        return int(PRESSURE_SOLVERS[self.pressure]["max_iteration"])

    def write(self, folder: Path) -> None:
        """Write ``cavity.mdpa``, ``parameters.json`` and ``materials.json``."""
        with (folder / "cavity.mdpa").open("w", encoding="ascii") as file:
            file.writelines(f"{line}\n" for line in self.mesh_lines())
        for name, content in (("parameters", self.parameters()), ("materials", self.materials())):
            (folder / f"{name}.json").write_text(json.dumps(content, indent=1), encoding="ascii")

    def mesh_lines(self) -> Iterator[str]:
        """Yield the lines of the mesh in Kratos' format mdpa; points, cells and faces count from 1."""
        cavity = self.cavity
        faces = cavity.faces()
        yield from ("Begin ModelPartData", "End ModelPartData", "Begin Properties 0", "End Properties")
        yield "Begin Nodes"
        yield from (f"{k} {x!r} {y!r} {z!r}" for k, (x, y, z) in enumerate(cavity.mesh.points.tolist(), 1))
        yield "End Nodes"
        yield from _entities("Elements", "Element3D4N", cavity.cells)
        yield from _entities("Conditions", "SurfaceCondition3D3N", faces)
        every = np.arange(cavity.mesh.n_points)
        yield from _part("fluid", every, elements=np.arange(len(cavity.cells)))
        yield from _part("skin", np.unique(faces), conditions=np.arange(len(faces)))
        yield from _part("lid", cavity.moving)
        yield from _part("walls", cavity.resting)
        yield from _part("pin", np.array([cavity.pinned]))

    def parameters(self) -> Settings:
        """Return the ``ProjectParameters`` of a ``FluidDynamicsAnalysis``."""
        return {
            "problem_data": {
                "problem_name": "cavity", "parallel_type": "OpenMP", "echo_level": 0, "start_time": 0.0,
                "end_time": self.steps * self.dt,
            },
            "solver_settings": self._solver(),
            "processes": {"boundary_conditions_process_list": [
                _fixed("assign_vector_variable_process", "lid", "VELOCITY", [1.0, 0.0, 0.0]),
                _fixed("assign_vector_variable_process", "walls", "VELOCITY", [0.0, 0.0, 0.0]),
                _fixed("assign_scalar_variable_process", "pin", "PRESSURE", 0.0),
            ]},
        }  # fmt: skip

    def _solver(self) -> Settings:
        return {
            "solver_type": "fractional_step", "model_part_name": MODEL, "domain_size": 3,
            "model_import_settings": {"input_type": "mdpa", "input_filename": "cavity"},
            "material_import_settings": {"materials_filename": "materials.json"},
            "formulation": {"element_type": "FractionalStep", "condition_type": "WallCondition"},
            "volume_model_part_name": f"{MODEL}.fluid", "skin_parts": [f"{MODEL}.skin"], "no_skin_parts": [],
            "time_stepping": {"automatic_time_step": False, "time_step": self.dt},
            "time_order": 2, "predictor_corrector": False, "maximum_velocity_iterations": 3,
            "velocity_tolerance": 1e-3, "use_slip_conditions": False, "compute_reactions": False, "echo_level": 1,
            "pressure_linear_solver_settings": {**PRESSURE_SOLVERS[self.pressure], "tolerance": self.tolerance},
            "velocity_linear_solver_settings": _VELOCITY,
        }  # fmt: skip

    def materials(self) -> Settings:
        """Return the material of the fluid."""
        variables = {"DENSITY": 1.0, "DYNAMIC_VISCOSITY": self.viscosity}
        material = {"constitutive_law": {"name": "Newtonian3DLaw"}, "Variables": variables, "Tables": {}}
        return {"properties": [{"model_part_name": f"{MODEL}.fluid", "properties_id": 1, "Material": material}]}


def _fixed(module: str, part: str, variable: str, value: object) -> Settings:
    """Return the process that holds a variable on the points of a part."""
    return {
        "python_module": module, "kratos_module": "KratosMultiphysics",
        "Parameters": {"model_part_name": f"{MODEL}.{part}", "variable_name": variable, "value": value},
    }  # fmt: skip


def _entities(block: str, kind: str, nodes: IntArray) -> Iterator[str]:
    """Yield cells or faces: number, property, points."""
    yield f"Begin {block} {kind}"
    yield from (f"{k} 0 {' '.join(map(str, row))}" for k, row in enumerate((nodes + 1).tolist(), 1))
    yield f"End {block}"


def _part(name: str, nodes: Numbers, **others: Numbers) -> Iterator[str]:
    """Yield a part of the model: the numbers of its points, cells and faces, from 0 here."""
    yield f"Begin SubModelPart {name}"
    for block, numbers in {"nodes": nodes, "elements": (), "conditions": (), **others}.items():
        yield f"Begin SubModelPart{block.capitalize()}"
        yield from map(str, (np.asarray(numbers, dtype=np.int64) + 1).tolist())
        yield f"End SubModelPart{block.capitalize()}"
    yield "End SubModelPart"
