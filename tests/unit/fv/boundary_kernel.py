"""States at boundary faces found by themselves, as the loops of the solver find them among other things."""

from __future__ import annotations

from fluxloom.core.access import Const, Read, Write
from fluxloom.fv.compressible.boundary_states import FaceState, boundary_state, transported
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import zeros

__all__ = ["boundary_states"]


@kernel
def boundary_states(
    kind: Read, par: Read, normal: Read, arm: Read, w: Read, slope: Read, share: Read, out: Write, *,
    gamma: Const[float], states: Const[tuple[FaceState, ...]], d: Const[int], nv: Const[int], linear: Const[int],
):  # fmt: skip
    r"""State of a boundary element.

    ``w``, ``slope`` and ``share`` are those of the cell behind, of ``nv``, ``d nv`` (component ``k`` of variable ``v``
    at ``d v + k``) and ``nv`` numbers; ``arm`` leads from its centroid to the face. With ``linear`` 1 the state inside
    is :math:`w_v + \phi_v\, \nabla w_v \cdot arm`, and where that has no positive density or pressure, or with
    ``linear`` 0, the state ``w`` of the cell. With ``nv = d + 3`` the last variable is that of a turbulence model.
    """
    inside = zeros(nv)
    for v in range(nv):
        inside[v] = w[v]
    if linear == 1:
        for v in range(nv):
            for k in range(d):
                inside[v] += share[v] * slope[d * v + k] * arm[k]
        if not (inside[0] > 0.0 and inside[1 + d] > 0.0):
            for v in range(nv):
                inside[v] = w[v]
    b = zeros(2 + d)
    boundary_state(states, kind[0], par, normal, inside, b, gamma, d)
    for v in range(2 + d):
        out[v] = b[v]
    if nv == d + 3:
        out[nv - 1] = transported(states, kind[0], par, normal, inside, b, inside[nv - 1], d)
