"""Fields that follow from the states of a gas cell by cell: temperature, Mach number, what it would be at rest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fluxloom.fv.free_stream import FreeStream
from fluxloom.fv.gas import Gas
from fluxloom.fv.gas_dynamics import total_pressure_ratio, total_temperature_ratio
from fluxloom.run.fields import Quantity

__all__ = ["gas_quantities"]

Array = npt.NDArray[np.float64]


def gas_quantities(states: Callable[[], Array], gas: Gas, stream: FreeStream | None) -> dict[str, Quantity]:
    r"""Return ``T``, ``mach``, ``total_pressure``, ``total_temperature``, ``entropy``, and ``cp`` over a free stream.

    Total values are those of a gas that is brought to rest without losses. The entropy is
    :math:`s = R / (\gamma - 1) \ln(p / \rho^\gamma)`, less that of the free stream where there is one, and
    :math:`c_p = (p - p_\infty) / (\rho_\infty u_\infty^2 / 2)`.

    Parameters
    ----------
    states
        Finds primitive states ``(rho, u, p)``, ``(n, d + 2)``.
    gas
        What flows.
    stream
        What it is far away; None, or at rest: there is no coefficient.
    """

    def mach() -> Array:
        """Return the Mach number."""
        w = states()
        return np.linalg.norm(w[:, 1:-1], axis=1) / gas.sound(w)

    def entropy(w: Array) -> Array:
        """Return the entropy of states."""
        return gas.constant / (gas.gamma - 1.0) * np.log(w[:, -1] / w[:, 0] ** gas.gamma)

    def above() -> Array:
        """Return the entropy over that of the free stream."""
        far = 0.0
        if stream is not None:
            far = entropy(np.array([[stream.density(gas), 0.0, stream.pressure]]))[0]
        return entropy(states()) - far

    found = {
        "T": Quantity("K", "temperature", lambda: gas.temperature(states())),
        "mach": Quantity("", "Mach number", mach),
        "total_pressure": Quantity(
            "Pa", "pressure of the gas at rest", lambda: states()[:, -1] * total_pressure_ratio(mach(), gas.gamma)
        ),
        "total_temperature": Quantity(
            "K", "temperature of the gas at rest",
            lambda: gas.temperature(states()) * total_temperature_ratio(mach(), gas.gamma),
        ),
        "entropy": Quantity("J/(kg K)", "entropy, over that of the free stream where there is one", above),
    }  # fmt: skip
    dynamic = 0.0 if stream is None else stream.dynamic_pressure(gas)
    if stream is not None and dynamic > 0.0:
        far = stream.pressure
        found["cp"] = Quantity("", "pressure coefficient", lambda: (states()[:, -1] - far) / dynamic)
    return found
