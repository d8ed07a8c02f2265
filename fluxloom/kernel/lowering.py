"""A kernel specialised to one loop: shapes and baked constants in, a `LoweredKernel` out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from fluxloom.core.access import Access
from fluxloom.core.errors import AccessError, KernelError, did_you_mean
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import count_flops, nodes, walk
from fluxloom.kernel.digest import kernel_digest
from fluxloom.kernel.inlining import KernelLowerer
from fluxloom.kernel.ir import RAGGED, Kind
from fluxloom.kernel.passes import cut_chains, remove_dead_locals, scalarise
from fluxloom.kernel.signature import Signature
from fluxloom.kernel.source import FunctionSource
from fluxloom.kernel.state import Builder, Scope
from fluxloom.kernel.strategies import run_time_constants
from fluxloom.kernel.values import NoneValue, ParameterView, Value

__all__ = ["lower"]

MOST_LOCAL = 128 << 10
"""Bytes of the local arrays of an element: stacks of threads hold those of a pack, registers and caches far less."""

MOST_PASSES = 20  # each pass can only widen a local from integer to real


def lower(
    source: FunctionSource, signature: Signature, shapes: Mapping[str, ir.ArgShape], baked: Mapping[str, Any]
) -> ir.LoweredKernel:
    """Specialise a kernel.

    Parameters
    ----------
    source, signature
        The kernel.
    shapes
        How each data parameter is indexed.
    baked
        Values of constants that are folded into the code: every ``Const[...]`` parameter without a
        default, and any run-time constant that is to be fixed as well.

    Raises
    ------
    KernelError
        Wrong indices or kinds, a use before assignment, a missing or wrong baked value.
    AccessError
        A ``Write`` component read too early or not written on some path.
    """
    _check_shapes(source, signature, shapes)
    signature, bindings = _bindings(source, signature, shapes, baked)
    kinds: dict[str, Kind] = {}
    for _ in range(MOST_PASSES):
        builder = _run(source, signature, shapes, bindings, kinds)
        kinds = builder.kinds
        if not builder.changed:
            return _finish(source, signature, shapes, builder)
    raise source.error(source.node, "the kinds of the locals do not settle", "initialise reals with 0.0, not 0")


def _check_shapes(source: FunctionSource, signature: Signature, shapes: Mapping[str, ir.ArgShape]) -> None:
    names = [item.name for item in signature.parameters]
    for name in shapes:
        if name not in names:
            raise KernelError(f"{source.name!r} has no data parameter {name!r}{did_you_mean(name, names)}",
                              filename=source.filename, line=source.first_line)  # fmt: skip
    for item in signature.parameters:
        if item.name not in shapes and item.optional:
            continue
        if item.name not in shapes:
            raise source.error(item.location, f"no shape is given for {item.name!r}")
        shape = shapes[item.name]
        if shape.kind is Kind.BOOL or any(extent < 1 for extent in shape.components):
            raise source.error(item.location, f"{item.name!r} cannot have the shape {shape}")
        if shape.legs is not None and shape.legs != RAGGED and shape.legs < 1:
            raise source.error(item.location, f"{item.name!r} cannot have {shape.legs} legs")


def _bindings(
    source: FunctionSource, signature: Signature, shapes: Mapping[str, ir.ArgShape], baked: Mapping[str, Any]
) -> tuple[Signature, dict[str, Value]]:
    """Return the signature of this specialisation, and what each parameter name stands for at the start of the body.

    Data that the loop leaves out are not in it, and run-time fields of strategies are constants of it.
    """
    names = [item.name for item in signature.constants]
    for name in baked:
        if name not in names:
            raise KernelError(f"{source.name!r} has no constant {name!r}{did_you_mean(name, names)}",
                              filename=source.filename, line=source.first_line)  # fmt: skip
    bindings: dict[str, Value] = {
        item.name: ParameterView(item.name) if item.name in shapes else NoneValue(item.name)
        for item in signature.parameters
    }
    constants: list[ir.ConstantParameter] = []
    for item in signature.constants:
        constants.append(item)
        given = baked.get(item.name, signature.defaults.get(item.name)) if item.baked else baked.get(item.name)
        if item.name in baked or (item.baked and item.name in signature.defaults):
            bindings[item.name] = signature.value(source, item, given)
        elif not item.baked:
            bindings[item.name] = ir.ReadConstant(item.kind, item.name)
        else:
            raise source.error(item.location, f"the constant {item.name!r} has no value",
                               "give it when the loop is built, or give it a default")  # fmt: skip
        if item.name in signature.strategies:
            constants += run_time_constants(item, given)
    _check_names(source, constants)
    parameters = tuple(item for item in signature.parameters if item.name in shapes)
    return replace(signature, parameters=parameters, constants=tuple(constants)), bindings


def _check_names(source: FunctionSource, constants: list[ir.ConstantParameter]) -> None:
    """Check that no run-time field of a strategy is called like another constant."""
    known: set[str] = set()
    for item in constants:
        if item.name in known:
            raise source.error(item.location, f"two constants are called {item.name!r}: one of them is a field of a "
                               "strategy, which is called by its path", "rename the other one")  # fmt: skip
        known.add(item.name)


def _run(
    source: FunctionSource,
    signature: Signature,
    shapes: Mapping[str, ir.ArgShape],
    bindings: Mapping[str, Value],
    kinds: Mapping[str, Kind],
) -> Builder:
    names = {name: name for name in (*bindings, *sorted(source.assigned))}
    parameters = {item.name: item for item in signature.parameters}
    builder = Builder(parameters, shapes, kinds, names)
    builder.flow.bound.update(bindings)
    KernelLowerer(source, builder).block(Scope(source, names), source.node.body)
    for item in signature.parameters:
        missing = builder.first_unwritten(item.name) if item.access is Access.WRITE else None
        if missing is None:
            continue
        if isinstance(shapes[item.name], ir.SpreadShape):
            _check_spread(source, item, builder)
            continue
        text = item.name + "".join("[j]" if index == RAGGED else f"[{index}]" for index in missing)
        raise source.error(item.location, f"{item.name!r} is Write but {text} is not written on every path",
                           "assign it on every path, or annotate it RW", kind=AccessError)  # fmt: skip
    return builder


def _check_spread(source: FunctionSource, item: ir.Parameter, builder: Builder) -> None:
    """Check that every component of a ``Write`` through a stencil is written on every path, through whatever leg."""
    missing = builder.first_unspread(item.name)
    if missing is not None:
        text = "it" if not missing else f"component {missing[0] if len(missing) == 1 else missing}"
        raise source.error(item.location, f"{item.name!r} is Write through a stencil but {text} is not written on "
                           "every path", "assign it through one leg on every path, or annotate it RW",
                           kind=AccessError)  # fmt: skip


def _finish(
    source: FunctionSource, signature: Signature, shapes: Mapping[str, ir.ArgShape], builder: Builder
) -> ir.LoweredKernel:
    body = remove_dead_locals(tuple(builder.blocks[0]))
    slots = [slot for slot in builder.slots.values() if slot.name not in builder.tables]
    arrays = [ir.LocalArray(slot.name, builder.kinds[slot.name], slot.shape) for slot in slots]
    body, arrays, added = scalarise(body, arrays, builder.used | builder.kinds.keys())
    body = remove_dead_locals(body)
    body, flags = cut_chains(body, builder.used | builder.kinds.keys() | added.keys())
    kinds = builder.kinds | added | flags
    every = nodes(body)
    arrays = tuple(array for array in arrays if any(getattr(node, "name", None) == array.name for node in every))
    _check_room(source, arrays, body)
    scalars = tuple((name, kinds[name]) for name in dict.fromkeys(_scalar_names(every)))
    read = {node.name for node in every if isinstance(node, ir.ReadConstant)}
    constants: tuple[ir.ConstantParameter, ...] = tuple(item for item in signature.constants if item.name in read)
    ordered = tuple(shapes[item.name] for item in signature.parameters)
    used = {node.name for node in every if isinstance(node, ir.TableElement)}
    tables = tuple(
        ir.Table(name, item.kind, item.shape, item.values) for name, item in builder.tables.items() if name in used
    )
    digest = kernel_digest(signature.parameters, ordered, constants, scalars, arrays, body, tables)
    return ir.LoweredKernel(
        source.name, signature.parameters, ordered, constants, scalars, arrays, body, digest, count_flops(body), tables
    )


def _check_room(source: FunctionSource, arrays: tuple[ir.LocalArray, ...], body: tuple[ir.Statement, ...]) -> None:
    """Raise for local arrays that threads have no room for."""
    used = 8 * sum(prod(array.shape) for array in arrays)
    if used > MOST_LOCAL:
        large = max(arrays, key=lambda array: prod(array.shape))
        places = (item.location for item in walk(body) if isinstance(item, ir.StoreLocal) and item.name == large.name)
        raise source.error(
            next(places, source.location(source.node)),
            f"the local arrays of an element need {used:,} bytes, {large.name!r} of shape {large.shape} the most: "
            f"at most {MOST_LOCAL:,} are possible",
            "make it a dat with these components, or another set with a map",
        )


def _scalar_names(nodes: list[ir.Expression | ir.Statement]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, (ir.Assign, ir.For, ir.Local)):
            yield node.name
