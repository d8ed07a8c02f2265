"""Lagrange shape functions on a bound mesh: the set of degrees of freedom, the map to it, and tables for kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.errors import MeshError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import Argument, TableMap
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.cells.cell_dofs import element_of
from fluxloom.fe.cells.dofs import Dofs, shared_dofs
from fluxloom.fe.cells.elements import Lagrange
from fluxloom.fe.cells.quadrature import Quadrature, gauss, require_rule
from fluxloom.fe.cells.sides import Places, Sides, evaluated, images
from fluxloom.fe.poisson_kernels import square_error
from fluxloom.kernel.frontend import Kernel
from fluxloom.mesh.ranks.bind import Mesh

__all__ = ["LagrangeSpace", "described"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LagrangeSpace:
    """Continuous functions ``u(x) = sum_i u_i phi_i(x)`` on the cells of a mesh; make one with `on` or `of`.

    Cells are images of the reference cell under the map of their corners, ``x = sum_c N_c(xi) x_c``, so those of
    order 2 and more have straight edges too. On several ranks `rows` are the degrees of freedom that this rank owns.

    Attributes
    ----------
    mesh
        The mesh in a context.
    dofs
        Degrees of freedom of its cells.
    rule
        Points and weights of the sums over a cell.
    rows
        The degrees of freedom as a set.
    map
        Cell -> its degrees of freedom.
    """

    mesh: Mesh
    dofs: Dofs
    rule: Quadrature
    rows: Set
    map: TableMap

    @classmethod
    def on(cls, mesh: Mesh, order: int, rule: Quadrature | None = None) -> LagrangeSpace:
        """Return the space of some order on a mesh; collective on several ranks.

        Parameters
        ----------
        mesh
            A mesh of one kind of cells. Of several ranks with the maps ``cell_nodes`` and ``boundary_nodes``, of
            hexahedra of order 2 and more ``face_nodes`` too, for fluxes through sides ``boundary_cell``; fewer maps
            than all have smaller halos.
        order
            ``p``: 1 to 4, of simplices 1 or 2.
        rule
            By default Gauss's with ``order + 1`` points a direction.

        Raises
        ------
        MeshError, SolverError
            See `fluxloom.fe.cells.dofs.shared_dofs` and `of`.
        """
        _require_bound(mesh)
        return cls.of(mesh, shared_dofs(mesh.part, order), rule)

    @classmethod
    def of(cls, mesh: Mesh, dofs: Dofs, rule: Quadrature | None = None) -> LagrangeSpace:
        """Return the space of some degrees of freedom.

        Parameters
        ----------
        mesh
            A mesh of one kind of cells, bound from the arrays that ``dofs`` was made for.
        dofs
            From `fluxloom.fe.cells.dofs.shared_dofs`, or of a mesh on one rank `fluxloom.fe.cells.dofs.lagrange_dofs`.
        rule
            By default Gauss's with ``order + 1`` points a direction.

        Raises
        ------
        MeshError
            If the mesh is not bound to a context, or the degrees of freedom are those of another mesh, or of a whole
            one where it is divided among ranks.
        SolverError
            For a rule of another reference cell.
        """
        _require_bound(mesh)
        element, cells = dofs.element, mesh.cells.executed
        if len(dofs.cells) != cells or element.dimension != mesh.dimension:
            raise MeshError(
                f"{mesh.path}: the degrees of freedom are of {len(dofs.cells)} {element.shape} cells, the mesh has "
                f"{cells} in {mesh.dimension} dimensions, on this of {mesh.context.comm.size} ranks: make them of "
                "mesh.part, with shared_dofs"
            )
        context = mesh.context
        default = gauss(element.shape, element.order + 1)
        chosen = default if rule is None else require_rule(rule, element.shape, f"{mesh.path}: the space")
        rows = context.set(dofs.part, "dofs")
        return cls(mesh, dofs, chosen, rows, context.map(mesh.cells, rows, dofs.cells, "cell_dofs"))

    @classmethod
    def at_points(cls, mesh: Mesh) -> LagrangeSpace:
        """Return linear elements of triangles or tetrahedra on the points of the mesh, `rows` being ``mesh.nodes``.

        The rule is the centroid. On several ranks the mesh is divided with the map ``cell_nodes``; patches are those of
        the mesh, ``dofs`` names none.

        Raises
        ------
        MeshError
            For other cells.
        """
        element = element_of(mesh.path, [name for name, count in mesh.part.blocks.items() if count], 1)
        nodes, cells = mesh.part.part("nodes"), mesh.part.table("cell_nodes")[: mesh.cells.executed, : element.size]
        dofs = Dofs(element, cells, mesh.part.points[: nodes.owned], {}, nodes)
        rows = mesh.context.map(mesh.cells, mesh.nodes, cells, "cell_points")
        return cls(mesh, dofs, gauss(element.shape, 1), mesh.nodes, rows)

    def with_rule(self, rule: Quadrature) -> LagrangeSpace:
        """Return the same space, on the same set, with other points.

        Raises
        ------
        SolverError
            For a rule of another reference cell than that of its cells.
        """
        return replace(self, rule=require_rule(rule, self.dofs.element.shape, f"{self.mesh.path}: the space"))

    @property
    def context(self) -> Context:
        """Where it lives."""
        return self.mesh.context

    @property
    def corners(self) -> Argument:
        """Coordinates of the corners of a cell, ``x[c][a]`` in kernels."""
        return self.mesh.cell_nodes.argument(self.mesh.x)

    @cached_property
    def sides(self) -> Sides:
        """The boundary faces with the traces of the space; the first use is collective on several ranks.

        Raises
        ------
        MeshError
            If the mesh was divided among ranks without the map ``boundary_cell``.
        """
        return Sides.of(self.mesh, self.dofs, self.rows)

    @cached_property
    def tables(self) -> dict[str, Any]:
        """Constants of kernels, reference cell and all.

        ``phi[q][i]`` and ``slope[q][i][a]``, values and gradients of the shape functions at the points; ``corner
        [q][c][a]``, gradients of those of the corners; ``weight[q]``; ``n`` shape functions, ``d`` dimensions.
        """
        element, points = self.dofs.element, self.rule.points
        return {
            "phi": element.values(points).tolist(),
            "slope": element.gradients(points).tolist(),
            "corner": Lagrange(element.shape, 1).gradients(points).tolist(),
            "weight": self.rule.weights.tolist(),
            "n": element.size,
            "d": element.dimension,
        }

    def loop(self, kernel: Kernel, *arguments: Argument | Dat | Global, name: str, **constants: Any) -> Loop:
        """Return a loop over the cells; the kernel gets those of `tables` that it names."""
        known = {item.name for item in kernel.signature.constants} | set(kernel.signature.arrays)
        tables = {key: value for key, value in self.tables.items() if key in known}
        return Loop(kernel, self.mesh.cells, *arguments, name=name, **tables, **constants)

    def places(self) -> Array:
        """Return the points of the rule in all cells of this rank, ``(cells, q, d)``. Collective on several."""
        nodes = self.mesh.part.table("cell_nodes")[: self.mesh.cells.size]
        return images(self.mesh, self.dofs.element.shape, nodes, self.rule)

    def error(self, u: Dat, exact: Places) -> float:
        r"""Return the error in L2, :math:`\sqrt{\int (u - u_{exact})^2}`, with the points of the rule. Collective.

        Parameters
        ----------
        u
            Scalars on `rows`.
        exact
            Maps points ``(m, d)`` to values ``(m,)``. Take a rule with two points more than the default for them, such
            that its own error does not show.

        Raises
        ------
        SolverError
            If ``u`` is something else, or the function does not give one finite number for each point.
        """
        if not isinstance(u, Dat) or u.set is not self.rows or u.shape:
            raise SolverError(f"error: u has to be scalars on {self.rows}, not {described(u)}")
        places = self.places()
        values = raise_on_all_ranks(self.context.comm, lambda: evaluated(exact, places, "error"))
        at = self.context.dat(self.mesh.cells, values, "exact")
        result = self.context.scalar(0.0, "error")
        self.loop(square_error, self.corners, u[self.map], at, result, name="error")()
        return sqrt(float(np.asarray(result.value)))


def described(given: object) -> str:
    """Return words for what was given in place of a dat.

    Parameters
    ----------
    given
        Anything.
    """
    if isinstance(given, np.ndarray):
        return f"a NumPy array of {given.shape}: make it a dat, context.dat(over, array)"
    if isinstance(given, Dat):
        return f"{given!r}"
    return f"{type(given).__name__}"


def _require_bound(mesh: object) -> None:
    """Refuse arrays of a mesh where one in a context is wanted."""
    if not isinstance(mesh, Mesh):
        raise MeshError(
            f"LagrangeSpace: a mesh in a context is wanted, not {type(mesh).__name__}: bind it, "
            "fluxloom.mesh.ranks.bind.bind(data, context)"
        )
