"""Kernels with loops that stay loops, for a pack of elements: the loops outside, the lanes inside.

The compiler makes vectors of a loop over lanes if nothing in it loops, so a loop of the kernel whose trips are the same
for every element goes round the lanes::

    for lane: for q < 25: body(q)    becomes    for q < 25: for lane: body(q)

What the kernel keeps from one statement to the next it keeps for every lane. What is the same for all of them stays one
number: counters, what is computed from them, elements of tables. Each element sees its statements in their order.

Source: for loops over the elements of a batch inside those over shape functions and points, T. Sun, L. Mitchell,
K. Kulkarni, A. Kloeckner, D. A. Ham, P. H. J. Kelly: "A study of vectorization for matrix-free finite element methods",
Int. J. High Perform. Comput. Appl. 34 (2020) 629-644, section 3 (cross-element vectorization).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from fluxloom.codegen.abreast import AbreastLoop, mentioned
from fluxloom.codegen.coop import exposed_locals
from fluxloom.codegen.spec import LoopSpec
from fluxloom.core.access import Access
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import children, node_count, statement_blocks, walk

__all__ = ["RolledLoop", "has_uniform_loop"]

_LONGEST = 800
"""Nodes after which a loop over lanes ends and another begins: compilers do not look at very long ones."""

_ALONE = (ir.LocalElement, ir.Length)
"""Values of which each element has its own."""


@dataclass(frozen=True)
class _Piece:
    """Statements for each lane, or one statement for all lanes with the pieces of its blocks."""

    statements: tuple[ir.Statement, ...]
    common: bool = False
    blocks: tuple[tuple[_Piece, ...], ...] = ()


def has_uniform_loop(spec: LoopSpec) -> bool:
    """Whether a kernel has a loop whose trips are the same for all elements, outside conditions that are not."""
    if not any(isinstance(node, ir.For) for node in walk(spec.kernel.body)):
        return False
    names = _uniform_scalars(spec)

    def found(statements: Iterable[ir.Statement]) -> bool:
        common = [node for node in statements if _is_common(spec, names, node)]
        inside = [block for node in common for block in statement_blocks(node)]
        return any(isinstance(node, ir.For) for node in common) or any(found(block) for block in inside)

    return found(spec.kernel.body)


def _every(pieces: Iterable[_Piece]) -> Iterator[_Piece]:
    for piece in pieces:
        yield piece
        for block in piece.blocks:
            yield from _every(block)


# ------------------------------------------------------------------------------------------- what is uniform
def _is_uniform(spec: LoopSpec, names: Collection[str], node: ir.Expression) -> bool:
    """Whether an expression has one value for all elements; ``names`` are the locals that have."""
    if isinstance(node, ir.Local):
        return node.name in names
    if isinstance(node, ir.Read):
        arg = spec.arg(node.parameter)
        if arg.kind != "global" or arg.access is not Access.READ:
            return False
    return not isinstance(node, _ALONE) and all(_is_uniform(spec, names, child) for child in children(node))


def _is_common(spec: LoopSpec, names: Collection[str], node: ir.Statement) -> bool:
    """Whether a loop or a condition goes the same way for all elements."""
    return isinstance(node, (ir.For, ir.If)) and all(_is_uniform(spec, names, item) for item in children(node))


def _uniform_scalars(spec: LoopSpec) -> frozenset[str]:
    """Return the scalar locals that always have one value for all elements."""
    names = {name for name, _ in spec.kernel.scalars}

    def differing(statements: Iterable[ir.Statement], common: bool) -> Iterator[str]:
        for node in statements:
            inside = common and _is_common(spec, names, node)
            if isinstance(node, ir.For) and not inside:
                yield node.name
            if isinstance(node, ir.Assign) and not (common and _is_uniform(spec, names, node.value)):
                yield node.name
            for block in statement_blocks(node):
                yield from differing(block, inside)

    while lost := names & set(differing(spec.kernel.body, True)):
        names -= lost
    return frozenset(names)


# --------------------------------------------------------------------------------------------------- pieces
def _cut(spec: LoopSpec, names: frozenset[str], body: tuple[ir.Statement, ...] | None = None) -> tuple[_Piece, ...]:
    """Cut a body into what is done for each lane and what is done once for all."""
    pieces: list[_Piece] = []
    pending: list[ir.Statement] = []
    length = 0

    def flush() -> None:
        if pending:
            pieces.append(_Piece(tuple(pending)))
            pending.clear()

    for node in spec.kernel.body if body is None else body:
        if _is_common(spec, names, node):
            flush()
            blocks = tuple(_cut(spec, names, block) for block in statement_blocks(node))
            pieces.append(_Piece((node,), True, blocks))
        elif isinstance(node, ir.Assign) and node.name in names:
            if node.name in mentioned(pending):
                flush()
            pieces.append(_Piece((node,), True))  # ahead of what is pending, which neither reads nor changes it
        else:
            length = _size(node) + (length if pending else 0)
            pending.append(node)
            if length > _LONGEST:
                flush()
    flush()
    return tuple(pieces)


def _size(statement: ir.Statement) -> int:
    return sum(node_count(item) for item in walk([statement]))


class RolledLoop(AbreastLoop):
    """Writes a kernel for a pack of ``lanes`` elements with its loops outside the loops over lanes.

    What is written stands outside any loop over lanes; elements of dats are those of lane ``l``.
    """

    def write(self, indent: int = 2) -> list[str]:
        """Return all statements, the loops over lanes included; the constants are left in `constants`."""
        kernel, pad = self.spec.kernel, "    " * indent
        self.printer.declare(kernel, indent)
        names = _uniform_scalars(self.spec)
        pieces = _cut(self.spec, names)
        self._private = self._private_scalars(pieces, names)
        kept = {name for name, _ in kernel.scalars} | {array.name for array in kernel.arrays}
        kept -= names.union(*self._private.values())
        self.printer.across = frozenset(kept)
        self.declare_constants()
        lines = [pad + line for line in self._declarations(names, "")]
        lines += [pad + line for line in self._declarations(kept, f"[{self.lanes}]", self.align)]
        lines += self._lane_scalars(pad)
        lines += self._lanes([line for line in self._prologue() if line], pad)
        lines += self._pieces(pieces, pad)
        return lines + self._lanes(self._epilogue(), pad)

    def _private_scalars(self, pieces: tuple[_Piece, ...], names: frozenset[str]) -> dict[int, frozenset[str]]:
        """Return the locals whose values no other piece needs, by the identity of the piece."""
        lanes = [piece for piece in _every(pieces) if not piece.common]
        scalars = {name for name, _ in self.spec.kernel.scalars}
        kept = {name for piece in lanes for name in exposed_locals(self.spec, piece.statements, "")}
        return {id(piece): frozenset((mentioned(piece.statements) & scalars) - names - kept) for piece in lanes}

    def _pieces(self, pieces: tuple[_Piece, ...], pad: str) -> list[str]:
        lines: list[str] = []
        for piece in pieces:
            node = piece.statements[0]
            if not piece.common:
                body = [*self._declarations(self._private[id(piece)], ""), *self.printer.block(piece.statements, 0)]
                lines += self._lanes(body, pad)
            elif isinstance(node, ir.For):
                head = self.printer.loop_head(node, 0)
                lines += [*(pad + line for line in head), *self._pieces(piece.blocks[0], pad + "    "), f"{pad}}}"]
            elif isinstance(node, ir.If):
                lines += [f"{pad}if ({self.printer.expression(node.test)}) {{"]
                lines += self._pieces(piece.blocks[0], pad + "    ")
                if piece.blocks[1]:
                    lines += [f"{pad}}} else {{", *self._pieces(piece.blocks[1], pad + "    ")]
                lines.append(f"{pad}}}")
            else:
                lines += [pad + line for line in self.printer.block(piece.statements, 0)]
        return lines
