"""Vector loads and stores of rows: the transposes between memory and packs.

A *pack* holds ``lanes`` elements, one C array ``[component][lane]`` an argument. Array-of-structures
dats are read row by row (one vector load of 4 or 2 neighbouring components an element) and
transposed with shuffles: on current processors that beats hardware gathers by a factor of 2 to 4.
Every helper is generated on demand, by name, for one combination of types and sizes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fluxloom.core.dtypes import Scalar

__all__ = ["RowShape", "chunks", "helper_source", "runs"]

_LOOPED = 32
"""Transfers of neighbouring components that are made in a loop: so many written out take the compiler seconds."""


@dataclass(frozen=True)
class RowShape:
    """One kind of row transfer: ``width`` components of ``lanes`` elements.

    ``mode`` is ``"load"`` (indexed), ``"loadseq"`` (consecutive elements), ``"unpack"`` (pack to an
    array of rows) or ``"storeseq"`` (pack to consecutive rows; streaming when ``stream``).
    """

    mode: str
    storage: Scalar
    compute: Scalar
    width: int
    lanes: int
    stream: bool = False

    @property
    def name(self) -> str:
        """The C name of the helper."""
        suffix = "_nt" if self.stream else ""
        return f"fl_{self.mode}{self.width}_{self.storage.name}_{self.compute.name}_{self.lanes}{suffix}"


def chunks(dim: int, lanes: int, storage: Scalar) -> list[tuple[int, int]]:
    """Cut ``dim`` components into ``(offset, width)`` chunks of 4, 2 and 1 that vector code can move."""
    if lanes < 4 or not storage.floating or storage.size == 2:
        return [(k, 1) for k in range(dim)]
    out, offset = [], 0
    for width in (4, 2, 1):
        while dim - offset >= width:
            out.append((offset, width))
            offset += width
    return out


def runs(rows: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Join many neighbouring ``(offset, width)`` of one width to ``(offset, width, how many)``; few stay apart."""
    joined: list[tuple[int, int, int]] = []
    for offset, width in rows:
        if joined and joined[-1][1] == width and joined[-1][0] + width * joined[-1][2] == offset:
            joined[-1] = (joined[-1][0], width, joined[-1][2] + 1)
        else:
            joined.append((offset, width, 1))
    out: list[tuple[int, int, int]] = []
    for first, width, count in joined:
        apart = [(first + k * width, width, 1) for k in range(count)]
        out += [(first, width, count)] if count >= _LOOPED else apart
    return out


def vector(scalar: Scalar, n: int) -> str:
    """Return the C name of a vector of ``n`` scalars (see `vector_types`)."""
    return f"fl_{scalar.name}x{n}"


def vector_types(scalar: Scalar, n: int) -> str:
    """Return the typedefs of a vector type: aligned, and unaligned for memory access."""
    name, size = vector(scalar, n), scalar.size * n
    return (
        f"typedef {scalar.c} {name} __attribute__((vector_size({size})));\n"
        f"typedef {scalar.c} {name}u __attribute__((vector_size({size}), aligned({scalar.size}), may_alias));\n"
    )


def helper_source(shape: RowShape) -> str:
    """Return the C source of one helper (vector types must be declared before)."""
    maker = {"load": _load, "loadseq": _load, "unpack": _unpack, "storeseq": _storeseq}[shape.mode]
    return maker(shape)


def _shuffle(a: str, b: str, index: list[int]) -> str:
    return f"__builtin_shufflevector({a}, {b}, {', '.join(map(str, index))})"


def _concatenate(shape: RowShape, rows: list[str], lines: list[str], tag: str) -> str:
    """Join equally long vectors pairwise into one; returns the name of the result."""
    n, scalar, step = shape.width, shape.storage, 0
    while len(rows) > 1:
        joined = []
        for k in range(0, len(rows), 2):
            name = f"{tag}{step}_{k}"
            lines.append(
                f"    {vector(scalar, 2 * n)} {name} = {_shuffle(rows[k], rows[k + 1], list(range(2 * n)))};"
            )
            joined.append(name)
        rows, n, step = joined, 2 * n, step + 1
    return rows[0]


def _load(shape: RowShape) -> str:
    sequential = shape.mode == "loadseq"
    where = "const int64_t i" if sequential else "const uint32_t *restrict e"
    head = (
        f"AI void {shape.name}({shape.compute.c} (*restrict out)[{shape.lanes}], "
        f"const {shape.storage.c} *restrict base, const int64_t stride, {where}) {{"
    )
    lines = [head]
    address = [
        f"base + (i + {lane}) * stride" if sequential else f"base + (size_t)e[{lane}] * stride"
        for lane in range(shape.lanes)
    ]
    results = _transpose_in(shape, address, lines)
    for k, name in enumerate(results):
        lines.append(f"    *({vector(shape.compute, shape.lanes)} *)out[{k}] = {_converted(shape, name)};")
    return "\n".join([*lines, "}", ""])


def _offsets(n: int) -> tuple[tuple[int, ...], ...]:
    # of numbers of two vectors of so many: the even and the odd ones of both, and halves of fours
    return (0, n, 2, n + 2), (1, n + 1, 3, n + 3), (0, 1, n, n + 1), (2, 3, n + 2, n + 3)


def _mixed(shape: RowShape, lines: list[str], *moves: tuple[str, str, str, tuple[int, ...]]) -> list[str]:
    # vectors of numbers of two others: out of each stretch of ``width`` those at some offsets; returns their names
    for name, one, other, offsets in moves:
        index = [start + x for start in range(0, shape.lanes, shape.width) for x in offsets]
        lines.append(f"    {vector(shape.storage, shape.lanes)} {name} = {_shuffle(one, other, index)};")
    return [name for name, *_ in moves]


def _converted(shape: RowShape, name: str) -> str:
    if shape.storage == shape.compute:
        return name
    return f"__builtin_convertvector({name}, {vector(shape.compute, shape.lanes)})"


def _transpose_in(shape: RowShape, address: list[str], lines: list[str]) -> list[str]:
    lanes, width, scalar = shape.lanes, shape.width, shape.storage
    full = vector(scalar, lanes)
    if width == 1:
        values = ", ".join(f"*({a})" for a in address)
        lines.append(f"    {full} v0 = {{{values}}};")
        return ["v0"]
    row = vector(scalar, width)
    wide = []
    for k in range(width):
        rows = [f"*(const {row}u *)({address[lane]})" for lane in range(k, lanes, width)]
        for j, text in enumerate(rows):
            lines.append(f"    {row} r{k}_{j} = {text};")
        wide.append(_concatenate(shape, [f"r{k}_{j}" for j in range(len(rows))], lines, f"w{k}_"))
    n, (even, odd, low, high) = lanes, _offsets(lanes)
    if width == 2:
        return _mixed(shape, lines, ("v0", *wide, (0, n)), ("v1", *wide, (1, n + 1)))
    first, last = wide[:2], wide[2:]
    _mixed(shape, lines, ("a", *first, even), ("b", *first, odd), ("c", *last, even), ("d", *last, odd))
    return _mixed(
        shape, lines, ("v0", "a", "c", low), ("v1", "b", "d", low), ("v2", "a", "c", high), ("v3", "b", "d", high)
    )


def _rows_out(shape: RowShape, lines: list[str]) -> list[str]:
    """Turn a pack into ``lanes`` row vectors; returns their names, in lane order."""
    lanes, width, scalar = shape.lanes, shape.width, shape.storage
    full, row = vector(scalar, lanes), vector(scalar, width)
    n, (even, odd, low, high) = lanes, _offsets(lanes)
    for k in range(width):
        value = f"*(const {vector(shape.compute, lanes)} *)in[{k}]"
        if shape.storage != shape.compute:
            value = f"__builtin_convertvector({value}, {full})"
        lines.append(f"    {full} v{k} = {value};")
    if width == 2:
        _mixed(shape, lines, ("w0", "v0", "v1", (0, n)), ("w1", "v0", "v1", (1, n + 1)))
    else:
        _mixed(shape, lines, ("a", "v0", "v2", low), ("c", "v0", "v2", high), ("b", "v1", "v3", low))
        _mixed(shape, lines, ("d", "v1", "v3", high), ("w0", "a", "b", even), ("w1", "a", "b", odd))
        _mixed(shape, lines, ("w2", "c", "d", even), ("w3", "c", "d", odd))
    names = []
    for lane in range(lanes):
        k, block = lane % width, lane // width
        name = f"w{k}"
        if lanes > width:
            index = list(range(block * width, block * width + width))
            lines.append(f"    {row} r{lane} = {_shuffle(name, name, index)};")
            name = f"r{lane}"
        names.append(name)
    return names


def _unpack(shape: RowShape) -> str:
    row = vector(shape.storage, shape.width)
    lines = [
        f"AI void {shape.name}({row} *restrict out, const {shape.compute.c} (*restrict in)[{shape.lanes}]) {{"
    ]
    for lane, name in enumerate(_rows_out(shape, lines)):
        lines.append(f"    out[{lane}] = {name};")
    return "\n".join([*lines, "}", ""])


def _storeseq(shape: RowShape) -> str:
    row = vector(shape.storage, shape.width)
    lines = [
        f"AI void {shape.name}({shape.storage.c} *restrict base, const int64_t stride, const int64_t i, "
        f"const {shape.compute.c} (*restrict in)[{shape.lanes}]) {{"
    ]
    if shape.width == 1:
        full = vector(shape.compute, shape.lanes)
        value = f"*(const {full} *)in[0]"
        if shape.storage != shape.compute:
            value = f"__builtin_convertvector({value}, {vector(shape.storage, shape.lanes)})"
        target = vector(shape.storage, shape.lanes)
        lines.append(f"    {target} v = {value};")
        lines.append("    if (stride == 1) {")
        plain = f"*({target}u *)(base + i) = v;"
        lines.append(f"        fl_stream_{target}(base + i, v);" if shape.stream else f"        {plain}")
        lines.append("        return;")
        lines.append("    }")
        lines += [f"    base[(i + {lane}) * stride] = v[{lane}];" for lane in range(shape.lanes)]
        return "\n".join([*lines, "}", ""])
    for lane, name in enumerate(_rows_out(shape, lines)):
        target = f"base + (i + {lane}) * stride"
        if shape.stream:
            lines.append(f"    fl_stream_{row}({target}, {name});")
        else:
            lines.append(f"    *({row}u *)({target}) = {name};")
    return "\n".join([*lines, "}", ""])


def stream_source(scalar: Scalar, width: int) -> str:
    """Return the store of one aligned row or vector that passes the caches, where the machine has one."""
    row = vector(scalar, width)
    bits = scalar.size * width * 8
    form = {
        (8, 512): ("__AVX512F__", "_mm512_stream_pd", "double", "__m512d"),
        (8, 256): ("__AVX__", "_mm256_stream_pd", "double", "__m256d"),
        (8, 128): ("__AVX__", "_mm_stream_pd", "double", "__m128d"),
        (4, 512): ("__AVX512F__", "_mm512_stream_ps", "float", "__m512"),
        (4, 256): ("__AVX__", "_mm256_stream_ps", "float", "__m256"),
        (4, 128): ("__AVX__", "_mm_stream_ps", "float", "__m128"),
    }.get((scalar.size, bits))
    plain = f"    *({row}u *)p = v;\n"
    head = f"AI void fl_stream_{row}({scalar.c} *p, {row} v) {{\n"
    if form is None:
        return head + plain + "}\n"
    macro, function, ctype, vtype = form
    return (
        f"{head}#if defined({macro})\n    {function}(({ctype} *)p, ({vtype})v);\n"
        f"#else\n{plain}#endif\n}}\n"
    )
