"""Fast direct solution of Poisson's equation on a box: a plan to solve again and again."""

from __future__ import annotations

from collections import OrderedDict
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from fluxloom.core.errors import DatError, SolverError
from fluxloom.device.base import Device
from fluxloom.device.buffer import View, gapless, steps
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.arguments import device_of, floating_of
from fluxloom.linalg.direct.poisson.decomposition import Cut, decompose
from fluxloom.linalg.direct.poisson.problem import read_problem
from fluxloom.linalg.direct.poisson.stages import Stages, same
from fluxloom.linalg.direct.transforms.ranks import Extent

__all__ = ["Plan"]

_KEPT = 4
"""Pairs of right-hand side and solution for which the calls are kept."""


class Plan:
    r"""Solves the discrete Poisson equation on a box, for one right-hand side after the other.

    .. math:: (L + \sigma) u = f

    with the second-order finite-volume Laplacian ``L`` in one, two or three dimensions (`directions`). Directions
    are diagonalised by Fourier, sine and cosine transforms, or by dense eigenvectors where they are stretched; along
    one of them tridiagonal systems are solved. The result is exact but for rounding, in
    :math:`O(N \log N)` operations where at most one direction is stretched.

    Parameters
    ----------
    shape
        Unknowns along each axis.
    spacing
        A length; or for each axis a length, or the coordinates of all faces (cells) or nodes, those of the boundary
        included.
    bc
        ``"periodic"``, ``"dirichlet"``, ``"neumann"``, `Dirichlet` or `Neumann` with data; for all axes, or for
        each axis one of these or a pair of them, for its low and its high end. In one dimension the pair alone will
        do; in two, a pair of names is one for each axis.
    centring
        ``"cell"``: unknowns between faces, the outermost faces are the boundary; ``"node"``: nodes, of which the
        outermost are on the boundary: unknown where the derivative is given, not where the value is, and the last
        one left out where they are periodic. For all axes, or for each.
    shift
        ``sigma``. One that is an eigenvalue of ``-L``, but for rounding, is refused; so is one that is zero but for
        rounding where ``L`` annuls constants.
    dtype
        ``"float64"`` or ``"float32"``.
    device
        A name such as ``"cpu"``, a device or a context; None: the processors of this machine.
    line
        Axis of the tridiagonal systems; None: none; ``"auto"``: see `fluxloom.linalg.direct.poisson.choice.choose`. An
        axis is refused where the mean of the solution would be lost to rounding, for a negative shift that is small.
    transforms
        ``"auto"``, or ``"matrix"``: dense eigenvectors also where there is a fast transform.
    library
        Of the transforms; see `fluxloom.linalg.direct.transforms.Transforms`.
    threads
        Of the processors; 0: as many as the device has.
    cut
        Boxes along each axis, where the device is a context with several ranks; or a `Cut`, which says more.

    Raises
    ------
    SolverError
        That says which parameter is wrong and how, or that the shift is an eigenvalue of ``-L``; if slabs are asked for
        and not possible, or the cut does not fit the ranks.
    DeviceUnavailable
        If the device, or a library that it needs, is missing.

    Examples
    --------
    >>> plan = Plan((64, 64), 1 / 64, bc="neumann")
    >>> pressure = plan(divergence)

    On several ranks:

    >>> context = fl.Context("cpu", comm=fl.world())
    >>> grid = context.grid((64, 64, 64), ghost=1)
    >>> plan = fl.poisson.Plan(grid.global_shape, 1 / 64, "neumann", device=context, cut=grid.factors)
    >>> plan(divergence, out=pressure)

    Notes
    -----
    With periodic and Neumann conditions alone and no shift the problem is singular: the weighted mean of the
    right-hand side (`removed`) is taken away, and that of the solution is zero. Weights are the volumes.

    On several ranks arrays are this rank's part, `box`; dats live on a grid of the context that is cut alike, whose
    ghosts are left alone. All ranks make the plan, and solve, at the same time.

    A plan has working memory: two threads must not call it at the same time.

    References
    ----------
    P. N. Swarztrauber, SIAM Review 19 (1977); U. Schumann and R. A. Sweet, J. Comput. Phys. 75 (1988); R. E. Lynch,
    J. R. Rice and D. H. Thomas, Numer. Math. 6 (1964).
    """

    def __init__(
        self,
        shape: int | tuple[int, ...],
        spacing: Any,
        bc: Any = "periodic",
        *,
        centring: Any = "cell",
        shift: float = 0.0,
        dtype: npt.DTypeLike = "float64",
        device: str | Device | Context | None = None,
        line: Literal["auto"] | int | None = "auto",
        transforms: Literal["auto", "matrix"] = "auto",
        library: str = "auto",
        threads: int = 0,
        cut: Cut | tuple[int, ...] | None = None,
    ) -> None:
        self.dtype = floating_of(dtype, "poisson")
        self.problem = read_problem(shape, spacing, bc, centring, shift, self.dtype)
        if not isinstance(threads, int | np.integer) or isinstance(threads, bool) or threads < 0:
            raise SolverError(f"poisson: threads is a number, or 0 for all, not {threads!r}")
        self.context = device if isinstance(device, Context) else Context(device_of(device))
        self.device = self.context.device
        on_host = self.device.shared and not self.device.items and library == "auto"
        host = all(self.context.comm.allgather(on_host))  # modes have one order on all ranks
        cut = cut if isinstance(cut, Cut) else Cut(cut)
        decomposition = decompose(self.problem, self.context.comm.size, cut, line, transforms, host=host)
        self.problem.check_shift(float(np.finfo(self.dtype).eps))
        self.way = decomposition.way
        threads = int(threads) or self.context.threads
        self._stages = Stages(self.context, self.problem, decomposition, self.dtype, library, threads, cut)
        self.shape = self._stages.box.shape
        self._steps: OrderedDict[tuple[object, ...], Steps] = OrderedDict()
        self._staged: DeviceArray | None = None

    # --------------------------------------------------------------------------------------------- solving
    def __call__(self, f: Any, out: Any = None) -> Any:
        """Return the solution for a right-hand side.

        Parameters
        ----------
        f
            An array of NumPy or of the device's library, or a dat on the device, of the shape of the unknowns (a dat
            or array without gaps may also be flat) and the type of the plan.
        out
            Where the solution goes, ``f`` itself if wanted; None: a new array, or dat, like ``f``. Other overlaps
            with ``f`` are refused.

        Notes
        -----
        For the last four pairs of memory the calls are kept, and so is the memory. On a device that works by itself
        the solution is there when the device says so, as with all that is asked of it.

        Raises
        ------
        DatError
            For another shape or type, or memory of another device.
        """
        if out is None:
            out = self._like(f)
        source, target = self._array(f, "f"), self._array(out, "out")
        self._kept(f, source, out, target)()
        if target is self._staged:
            self.device.synchronize()
            out[...] = target.host().reshape(np.shape(out))
        elif isinstance(out, Dat):
            out.version += 1
        else:
            target.array()  # what a library of the device does with it from now on comes after the solve
        return out

    def steps(self, f: DeviceArray, u: DeviceArray) -> Steps:
        """Return the calls that solve for the values of ``f``, into ``u``: for what solves again on the same memory.

        Raises
        ------
        DatError
            For arrays of another shape or type, or that overlap without being the same.
        """
        source, target = self._checked(f, "f"), self._checked(u, "u")
        if not same(source, target) and _overlap(source, target):
            raise DatError("poisson: the solution overlaps the right-hand side: give the same memory, or another one")
        return self._stages.steps(source, target)

    @property
    def box(self) -> Extent:
        """The part of right-hand side and solution that this rank has: everything, unless there are several ranks."""
        return self._stages.box

    @property
    def bytes_sent(self) -> int:
        """Bytes that this rank sends to others at each solve."""
        return self._stages.bytes_sent

    @property
    def removed(self) -> float:
        """Weighted mean that was taken from the last right-hand side of a singular problem; waits, collective.

        It is the mean of ``f`` less that of `boundary`, weighted with the volumes, in the units of ``f``; 0 before the
        first solve, and for problems that are not singular.
        """
        return self._stages.removed()

    def check(self) -> None:
        """Wait, and raise `SolverError`, on every rank, where a pivot vanished since the last check; collective."""
        self._stages.check()

    def close(self) -> None:
        """Give back what carries messages between ranks; collective. The plan is not used any more."""
        self._stages.close()

    # ----------------------------------------------------------------------------------------------- arrays
    def _like(self, f: Any) -> Any:
        """Return a new array, or dat, for the solution."""
        if isinstance(f, Dat):
            return Dat(f.set, shape=f.shape, dtype=f.scalar.numpy, layout=f.layout, name=f"{f.name}.poisson")
        array = self.device.as_array(f)
        if isinstance(array, np.ndarray):
            return np.empty(array.shape, self.dtype)
        return DeviceArray.zeros(self.device, tuple(array.shape), self.dtype).array()

    def _array(self, values: Any, what: str) -> DeviceArray:
        """Return values in the memory of the device; those that it cannot use there in memory of the plan."""
        if isinstance(values, Dat):
            values.context.settle(values)
        elif isinstance(values, np.ma.MaskedArray):
            raise DatError(f"poisson: {what} is a masked array: fill the masked values, {what}.filled(value)")
        elif isinstance(array := self.device.as_array(values), np.ndarray):
            gaps = not gapless(array.shape, array.strides, array.itemsize) or not array.size
            if gaps or self.device.why_not_shared(values, array):
                return self._stage(array, values, what)
        return self._checked(DeviceArray.of(self.device, values), what)

    def _stage(self, array: npt.NDArray[Any], values: Any, what: str) -> DeviceArray:
        if what == "out" and (not isinstance(values, np.ndarray) or not array.flags.writeable):
            raise DatError("poisson: out is an array that can be written to, or a dat")
        self._check_form(tuple(array.shape), array.dtype, what)
        if self._staged is None:
            self._staged = DeviceArray.zeros(self.device, self.shape, self.dtype)
        if what == "f":
            self._staged.assign(array.reshape(self.shape))
        return self._staged

    def _check_form(self, shape: tuple[int, ...], dtype: np.dtype[Any], what: str) -> None:
        if shape != self.shape and shape != (prod(self.shape),):
            message = f"poisson: {what} has shape {shape}, the plan {self.shape}"
            if self.context.distributed:
                factors = self._stages.decomposition.layouts[0].factors
                message += (
                    f"; this rank's part begins at {self.box.begin}, the cut is {factors}: give a grid's with "
                    "cut=grid.factors"
                )
            raise DatError(message)
        if dtype != self.dtype and dtype == self.dtype.newbyteorder():
            raise DatError(
                f"poisson: {what} is in another byte order than this machine's: give {what}.astype('{self.dtype}')"
            )
        if dtype != self.dtype:
            raise DatError(f"poisson: {what} is of {dtype}, the plan of {self.dtype}: give dtype= to the plan")

    def _checked(self, array: DeviceArray, what: str) -> DeviceArray:
        self._check_form(array.shape, array.dtype, what)
        if array.device is not self.device:
            raise DatError(f"poisson: {what} is in the memory of another device than that of the plan")
        if array.shape == self.shape:
            return array
        if not array.dense:
            raise DatError(f"poisson: {what} is flat and has gaps: give it the shape {self.shape}")
        size = self.dtype.itemsize
        view = View(self.shape, self.dtype, tuple(size * step for step in steps(self.shape)), array.view.offset)
        return DeviceArray(self.device, array.buffer, view)

    def _kept(self, f: Any, source: DeviceArray, out: Any, target: DeviceArray) -> Steps:
        """Return the calls for a pair of arrays, made at its first use."""
        key = (*_token(f, source), *_token(out, target))
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = self.steps(source, target)
            while len(self._steps) > _KEPT:
                self._steps.popitem(last=False)
        self._steps.move_to_end(key)
        return found

    # ------------------------------------------------------------------------------------- the operator
    def matrix(self) -> scipy.sparse.csr_array[Any]:
        """Return ``L + shift`` as a sparse matrix, ``(N, N)``, unknowns in C order."""
        return self.problem.matrix()

    def boundary(self) -> npt.NDArray[np.float64]:
        """Return what the boundary data add: ``matrix() @ u.ravel() + boundary().ravel() == f.ravel()``.

        On several ranks, in this rank's part.
        """
        return self.problem.boundary()[self.box.window]

    def volumes(self) -> npt.NDArray[np.float64]:
        """Return the volumes of the unknowns: ``volumes().ravel()[:, None] * matrix()`` is symmetric.

        On several ranks, of those of this rank's part.
        """
        return self.problem.volumes()[self.box.window]

    @property
    def inverse(self) -> LinearOperator:
        """The inverse of `matrix` for SciPy's solvers, on host memory; of data on the boundary it knows nothing.

        In a singular problem it is that on right-hand sides of weighted mean zero, and annuls constants. Its transpose
        is ``W inverse W^-1`` with the `volumes` ``W``.
        """
        if self.context.distributed:
            raise SolverError("poisson: an operator of SciPy has whole vectors, and this plan a part: call the plan")
        if self.problem.loads:
            raise SolverError("poisson: the inverse of a plan with boundary data is not linear: make one without")
        size = self.problem.size

        def apply(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return self(np.array(values, self.dtype).reshape(self.shape)).reshape(size)

        volumes = self.volumes().reshape(size)

        def transposed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return (volumes * apply(np.reshape(values, size) / volumes)).astype(self.dtype)

        given: dict[str, Any] = {"matvec": apply, "rmatvec": transposed, "dtype": self.dtype}
        return LinearOperator((size, size), **given)

    def __repr__(self) -> str:
        """Return `describe`."""
        return self.describe()

    def describe(self) -> str:
        """Return what is done, by which library, and how much memory it has taken."""
        shape = " x ".join(map(str, self.problem.shape))
        lines = [f"poisson: {shape} unknowns of {self.dtype}, on {self.device.describe()}"]
        lines += [f"  {text}" for text in self._stages.describe()]
        if self.problem.singular:
            lines.append("  singular: the weighted mean of f is removed, that of u is zero")
        own = " on this rank" * self.context.distributed
        return "\n".join([*lines, f"  working memory: {self._stages.nbytes / 2**20:.1f} MiB{own}"])


def _token(values: Any, array: DeviceArray) -> tuple[object, ...]:
    """Return what tells memory apart: the buffer of a dat, which knows where its values are; else the address."""
    return (id(array.buffer) if isinstance(values, Dat) else array.buffer.address, array.view)


def _overlap(one: DeviceArray, other: DeviceArray) -> bool:
    """Whether the spans of two arrays in memory overlap; buffers of a device's own never do, whatever they call it."""
    own = not (one.device.shared or (one.buffer.foreign and other.buffer.foreign))
    if one.buffer is not other.buffer and own:
        return False
    spans = []
    for array in (one, other):
        first = array.buffer.address + array.view.offset
        ends = [(n - 1) * step for n, step in zip(array.shape, array.view.strides, strict=True)]
        low = first + sum(end for end in ends if end < 0)
        spans.append((low, first + sum(end for end in ends if end > 0) + array.dtype.itemsize))
    return spans[0][0] < spans[1][1] and spans[1][0] < spans[0][1]

