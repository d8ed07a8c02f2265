"""Velocities at faces whose steady state does not depend on the step.

A step leaves ``m = u_s - Gamma u = dt (Gamma G - G_s) p`` between the velocity of a face and the mean of its cells: a
steady flow depends on ``dt``. In runs towards a steady flow ``m`` is carried on instead, and fades in a time ``tau``
that the flow has by itself:

::

    u_s = Gamma u_p - G_s phi + (1 - dt / tau) m,   m = tau (Gamma G - G_s) p   where the flow is steady
    1 / tau = max of both cells of  (sum |u_s| A / 2 + sum nu_s A / delta) / Omega

Nothing is carried where ``dt > tau``, beyond the largest stable step.

B. Yu, W.-Q. Tao, J.-J. Wei, Y. Kawaguchi, T. Tagawa, H. Ozoe: *Discussion on momentum interpolation method for
collocated grids of incompressible flow*. Numer. Heat Transfer B 42, 2002; S. K. Choi, ibid. 36, 1999.
"""

from __future__ import annotations

from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.incompressible.face_forces import accelerate_faces, outward_areas, source_of_faces
from fluxloom.fv.incompressible.projection_schemes import ProjectionScheme
from fluxloom.fv.incompressible.steady_faces import carried, fading, set_apart
from fluxloom.solvers.incompressible.corrections import CorrectedFlow, FlowCorrections

__all__ = ["SteadyFaces"]


class SteadyFaces:
    """What a flow carries on between velocities of faces and cells.

    Parameters
    ----------
    flow, corrections, scheme
        Whose, before its first step, and what it has of these.

    Attributes
    ----------
    apart : (faces,)
        ``m`` of the last step.
    acting
        Length of this step or stage.
    """

    def __init__(self, flow: CorrectedFlow, corrections: FlowCorrections | None, scheme: ProjectionScheme) -> None:
        self.flow, self._part = flow, scheme.fading
        ctx, cells, faces = flow.context, flow.spaces.cells, flow.spaces.faces
        self.apart, self._kept = (ctx.dat(flow.faces, name=name) for name in ("u_s.apart", "u_s.kept"))
        self._through = ctx.dat(flow.faces, name="nothing") if corrections is None else corrections.through
        self._rate, known = ctx.dat(flow.cells, name="fading"), flow.matrices
        self.acting, self._once = ctx.scalar(0.0, "acting"), ctx.scalar(1.0, "once")
        self._out = cells.rows(known.operators.outward(known.mirrors), flow.spaces.faces, "fading.outward")
        self._areas = cells.rows(outward_areas(flow.matrices), flow.spaces.faces, "kept.outward")
        self._behind = faces.rows(flow.matrices.velocity_operators.halves(), cells, "fading.cells")

    def carried(self) -> list[Loop]:
        """Return the loops to what is carried on, before the right-hand side of the pressure."""
        flow, out = self.flow, self._out
        return [
            Loop(fading, flow.cells, out.entries, flow.us[out.pattern], flow.nus[out.pattern], flow.volume, self._rate),
            Loop(carried, flow.faces, self._rate[self._behind.pattern], self.apart, self.acting, self._kept,
                 part=self._part),
        ]  # fmt: skip

    def source(self) -> Loop:
        """Return what it adds to the right-hand side of the pressure."""
        rows = self._areas
        return Loop(source_of_faces, self.flow.cells, rows.entries, self._kept[rows.pattern], self._once, self.flow.b)

    def faces(self) -> Loop:
        """Return what it adds to the velocities at faces."""
        return Loop(accelerate_faces, self.flow.faces, self._kept, self._once, self.flow.us)

    def measured(self) -> Loop:
        """Return what measures ``m`` behind a step."""
        flow, gamma = self.flow, self.flow.gamma
        return Loop(set_apart, flow.faces, gamma.entries, flow.u[gamma.pattern], flow.us, self._through, self.apart,
                    d=flow.dimension)  # fmt: skip

    def reset(self) -> None:
        """Begin anew."""
        self.apart.write(0.0)
