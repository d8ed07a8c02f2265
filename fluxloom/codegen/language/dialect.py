"""What differs between the members of the C family, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from fluxloom.core.dtypes import Scalar

__all__ = ["CUDA", "DIALECTS", "OPENCL", "C", "Dialect", "KernelWords"]

_REAL_FUNCTIONS = (
    "sqrt cbrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh hypot floor ceil "
    "copysign pow"
).split()


@dataclass(frozen=True)
class KernelWords:
    """Spellings of kernels that are run by groups of work items.

    Attributes
    ----------
    kernel
        Opening of a kernel, with ``{block}`` and ``{name}``; ``{limit}`` takes the register limit.
    pointer
        A parameter that points to the device's memory, with ``{const}``, ``{type}``, ``{alone}``, ``{name}``.
    alone
        What says that no other pointer leads to the same values.
    item, group, member
        Number of the work item, of its group, and of the item in its group.
    shared
        Qualifier of memory of a group.
    barrier
        Waits for the group.
    cast
        Pointer cast for vectors, with ``{const}`` and ``{type}``.
    vector
        A vector value, with ``{type}`` and ``{values}``.
    bits
        How an 8-byte word becomes a constant, by its C type.
    prelude
        File with the fixed part of a unit.
    down
        The value of the item ``{distance}`` places up in the same 32, without a barrier; empty: there is none.
    swap
        The value of the item whose place among ``{width}`` neighbours differs in the bit ``{distance}``, without a
        barrier; empty: there is none.
    rows
        Function that stores rows of two vectors, for ``{dim}`` components of ``{type}``; empty: there is none.
    finish
        Items of the one group that combines partial results.
    contraction_off
        Line that forbids contraction, where the source says so.
    unroll
        Asks for ``{n}`` copies of a loop body.
    several, one
        Type of ``{n}`` neighbouring numbers of ``{type}`` that one access moves, and the name of number ``{k}``.
    afresh
        Hides from the compiler where the value of the variable ``{name}`` comes from; empty: it cannot be hidden.
    table, large_table
        Qualifiers of constant tables: of as many as fit into `TABLE_BYTES` together, and of the others.
    """

    kernel: str
    limit: str
    pointer: str
    alone: str
    item: str
    group: str
    member: str
    shared: str
    barrier: str
    cast: str
    vector: str
    bits: Mapping[str, str]
    prelude: str
    down: str
    swap: str
    rows: str
    finish: int
    contraction_off: str
    unroll: str
    several: str
    one: str
    afresh: str
    table: str
    large_table: str


@dataclass(frozen=True)
class Dialect:
    """Spellings of one target language.

    Attributes
    ----------
    name
        Its name.
    real_functions
        Real intrinsics spelled as in ``math.h``.
    helper
        Helper functions of the prelude by intrinsic.
    field
        Prefix of a slot of the argument block.
    suffix
        Whether the float32 form of a real function ends in ``f`` (else it is overloaded).
    words
        Spellings of kernels; None for a language of plain functions.
    """

    name: str
    real_functions: frozenset[str]
    helper: Mapping[str, str]
    field: str = "A->"
    suffix: bool = True
    words: KernelWords | None = None

    def function(self, name: str, compute: Scalar) -> str:
        """Return the C name of an intrinsic on reals of the compute type."""
        if name in self.real_functions:
            return name if compute.size == 8 or not self.suffix else name + "f"
        return f"{self.helper[name]}_{compute.c}"

    def integer_function(self, name: str) -> str:
        """Return the C name of an intrinsic on integers."""
        return f"{self.helper[name]}_int64_t"


_HELPERS = MappingProxyType(
    {
        "min": "fl_min",
        "max": "fl_max",
        "abs": "fl_abs",
        "fabs": "fl_abs",
        "sign": "fl_sign",
        "root": "fl_root",
        "int": "fl_int",
        "+": "fl_add",
        "-": "fl_sub",
        "*": "fl_mul",
        "negate": "fl_neg",
        "//": "fl_floordiv",
        "%": "fl_mod",
        "isnan": "fl_isnan",
        "isfinite": "fl_isfinite",
        "isinf": "fl_isinf",
    }
)

C = Dialect(name="c", real_functions=frozenset(_REAL_FUNCTIONS), helper=_HELPERS)

CUDA = Dialect(
    name="cuda",
    real_functions=frozenset(_REAL_FUNCTIONS),
    helper=_HELPERS,
    field="",
    words=KernelWords(
        kernel='extern "C" __global__ void __launch_bounds__({block}{limit}) {name}(',
        limit=", {groups}",
        pointer="{const}{type} *{alone}{name}",
        alone="__restrict__ ",
        item="(int)(blockIdx.x * {block} + threadIdx.x)",
        group="(int)blockIdx.x",
        member="(int)threadIdx.x",
        shared="__shared__",
        barrier="__syncthreads();",
        cast="({const}{type} *)",
        vector="make_{type}({values})",
        bits=MappingProxyType(
            {"double": "__longlong_as_double({word})", "float": "__int_as_float((int){word})", "int64_t": "{word}"}
        ),
        prelude="prelude.cu",
        finish=1024,
        rows="fl_store_rows_{dim}_{type}",
        down="fl_down_{kind}({value}, {distance})",
        swap="fl_swap_{kind}({value}, {distance}, {width})",
        contraction_off="",
        unroll="#pragma unroll {n}",
        several="fl_several<{type}, {n}>",
        one=".v[{k}]",
        afresh="FL_AFRESH({name});",
        table="__constant__",
        large_table="static __device__ const",
    ),
)

OPENCL = Dialect(
    name="opencl",
    real_functions=frozenset(_REAL_FUNCTIONS),
    helper=_HELPERS,
    field="",
    suffix=False,
    words=KernelWords(
        kernel="__kernel __attribute__((reqd_work_group_size({block}, 1, 1))) void {name}(",
        limit="",
        pointer="__global {const}{type} *{alone}{name}",
        alone="restrict ",
        item="(int)get_global_id(0)",
        group="(int)get_group_id(0)",
        member="(int)get_local_id(0)",
        shared="__local",
        barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
        cast="(__global {const}{type} *)",
        vector="({type})({values})",
        bits=MappingProxyType({"double": "as_double({word})", "float": "as_float((int){word})", "int64_t": "{word}"}),
        prelude="prelude.cl",
        finish=256,
        rows="",
        down="",
        swap="",
        contraction_off="#pragma OPENCL FP_CONTRACT OFF",
        unroll="__attribute__((opencl_unroll_hint({n})))",
        several="{type}{n}",
        one=".s{k}",
        afresh="",
        table="__constant",
        large_table="__constant",
    ),
)

DIALECTS: Mapping[str, Dialect] = MappingProxyType({d.name: d for d in (C, CUDA, OPENCL)})
