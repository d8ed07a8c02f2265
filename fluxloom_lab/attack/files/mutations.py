"""What may happen to the bytes and the lines of a file on its way: each change is a function of a random generator."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType

__all__ = ["BYTES", "LINES", "NUMBERS", "is_text", "mutated"]

Change = Callable[[random.Random, bytes], bytes]

NUMBERS = (
    "-1", "0", "1", "2", "7", "-0.0", "0.5", "nan", "inf", "-inf", "1e308", "-1e308", "1e-320", "1e400", "2147483647",
    "2147483648", "-2147483649", "4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551616",
    "9" * 40, "1e9", "1000000000", "0x10", "1_000", "1,5", "1d3", "--1", "+", "", "abc", "é", "\x00",
)  # fmt: skip
"""Words in the place of a number."""

_NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WHOLE = (-1, 0, 1, 2, 3, 255, 2**15, 2**16, 2**31 - 1, -(2**31), 2**32, 2**62, 2**63 - 1, -(2**63))
_REALS = (float("nan"), float("inf"), -float("inf"), -0.0, 5e-324, 1e308, -1e308, 1e-200)


def _flip(pick: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(pick.choice((1, 1, 1, 2, 4, 16))):
        found[pick.randrange(len(found))] ^= 1 << pick.randrange(8)
    return bytes(found)


def _byte(pick: random.Random, data: bytes) -> bytes:
    place = pick.randrange(len(data))
    return data[:place] + bytes([pick.choice((0, 255, 127, 128, pick.randrange(256)))]) + data[place + 1 :]


def _cut(pick: random.Random, data: bytes) -> bytes:
    return data[: pick.randrange(len(data))]


def _span(pick: random.Random, data: bytes) -> tuple[int, int]:
    first = pick.randrange(len(data))
    return first, min(len(data), first + pick.choice((1, 2, 4, 8, 8, 16, 64, 256, 1024)))


def _drop(pick: random.Random, data: bytes) -> bytes:
    first, last = _span(pick, data)
    return data[:first] + data[last:]


def _repeat(pick: random.Random, data: bytes) -> bytes:
    first, last = _span(pick, data)
    return data[:last] + data[first:]


def _zero(pick: random.Random, data: bytes) -> bytes:
    first, last = _span(pick, data)
    return data[:first] + bytes(last - first) + data[last:]


def _swap(pick: random.Random, data: bytes) -> bytes:
    size = max(1, min(len(data) // 2, pick.choice((1, 4, 8, 64, 512))))
    a = pick.randrange(len(data) - size + 1)
    b = pick.randrange(len(data) - size + 1)
    found = bytearray(data)
    found[a : a + size], found[b : b + size] = data[b : b + size], data[a : a + size]
    return bytes(found)


def _whole(pick: random.Random, data: bytes) -> bytes:
    """Write a whole number, or one near to what is there, over 4 or 8 bytes at an aligned place."""
    size = pick.choice((4, 8))
    if len(data) < 2 * size:
        return _flip(pick, data)
    place = size * pick.randrange(len(data) // size) if pick.random() < 0.7 else pick.randrange(len(data) - size)
    form = pick.choice("<>")
    old = int.from_bytes(data[place : place + size], "little" if form == "<" else "big", signed=True)
    new = pick.choice((*_WHOLE, old + 1, old - 1, 2 * old, -old)) % (1 << (8 * size))
    return data[:place] + new.to_bytes(size, "little" if form == "<" else "big") + data[place + size :]


def _real(pick: random.Random, data: bytes) -> bytes:
    if len(data) < 16:
        return _flip(pick, data)
    place = 8 * pick.randrange(len(data) // 8)
    return data[:place] + struct.pack(pick.choice("<>") + "d", pick.choice(_REALS)) + data[place + 8 :]


BYTES: Mapping[str, Change] = MappingProxyType({
    "flip": _flip, "byte": _byte, "cut": _cut, "drop": _drop, "repeat": _repeat, "zero": _zero, "swap": _swap,
    "whole": _whole, "real": _real,
})  # fmt: skip
"""Changes of any file."""


# ------------------------------------------------------------------------------------------- lines


def _word(pick: random.Random, data: bytes) -> bytes:
    """Put something else in the place of a number."""
    places = list(_NUMBER.finditer(data))
    if not places:
        return _flip(pick, data)
    place = pick.choice(places if pick.random() < 0.6 else places[: max(12, len(places) // 10)])
    old = place.group()
    near = [b"-" + old, old + b"0", old[:-1]]
    if old.isdigit():
        near += [str(int(old) + step).encode() for step in (-1, 1)] * 3
    new = pick.choice(near) if pick.random() < 0.4 else pick.choice(NUMBERS).encode()
    return data[: place.start()] + new + data[place.end() :]


def _lines(change: Callable[[random.Random, list[bytes]], None]) -> Change:
    """Return a change of a file by one of its lines."""

    def changed(pick: random.Random, data: bytes) -> bytes:
        rows = data.splitlines(keepends=True)
        change(pick, rows)
        return b"".join(rows)

    return changed


def _drop_line(pick: random.Random, rows: list[bytes]) -> None:
    del rows[pick.randrange(len(rows))]


def _repeat_line(pick: random.Random, rows: list[bytes]) -> None:
    place = pick.randrange(len(rows))
    rows.insert(pick.choice((place, pick.randrange(len(rows)))), rows[place])


def _swap_lines(pick: random.Random, rows: list[bytes]) -> None:
    a, b = pick.randrange(len(rows)), pick.randrange(len(rows))
    rows[a], rows[b] = rows[b], rows[a]


def _join_lines(pick: random.Random, rows: list[bytes]) -> None:
    place = pick.randrange(len(rows))
    rows[place] = rows[place].rstrip(b"\r\n") + pick.choice((b" ", b""))


def _more_words(pick: random.Random, rows: list[bytes]) -> None:
    place = pick.randrange(len(rows))
    words = rows[place].split(b" ")
    number = pick.randrange(len(words))
    if pick.random() < 0.5:
        del words[number]
    else:
        words.insert(number, words[number].strip())
    rows[place] = b" ".join(words)


def _encoded(pick: random.Random, data: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    match pick.randrange(7):
        case 0:
            return text.encode(pick.choice(("utf-16", "utf-16-be", "utf-32")))
        case 1:
            return b"\xef\xbb\xbf" + data
        case 2:
            return text.replace("\n", pick.choice(("\r\n", "\r", "\n\n", "\x0b", "\u2028"))).encode()
        case 3:
            return text.replace("e", "é").encode("latin-1", "replace")
        case 4:
            return text.replace(" ", pick.choice(("\t", "\u00a0", "  ", "\x00"))).encode()
        case 5:
            return text.translate({48 + k: 0x0660 + k for k in range(10)}).encode()
    place = pick.randrange(len(data))
    return data[:place] + pick.choice((b"\x00", b"\x1a", b"\xff\xfe", b"\xc3", "�".encode())) + data[place:]


LINES: Mapping[str, Change] = MappingProxyType({
    "number": _word, "drop line": _lines(_drop_line), "repeat line": _lines(_repeat_line),
    "swap lines": _lines(_swap_lines), "join lines": _lines(_join_lines), "words": _lines(_more_words),
    "encoding": _encoded,
})  # fmt: skip
"""Changes of text files."""


def is_text(data: bytes) -> bool:
    """Whether the bytes of a file are lines."""
    return b"\x00" not in data and sum(byte > 126 for byte in data) < 0.02 * len(data)


def mutated(pick: random.Random, data: bytes) -> tuple[str, bytes]:
    """Return what happened to a file, and its bytes then; sometimes two things happen."""
    names: list[str] = []
    for _ in range(pick.choice((1, 1, 1, 2))):
        if not data:
            break
        some = {**BYTES, **LINES} if is_text(data) else BYTES
        heavy = list(LINES) * 3 if some is not BYTES else []
        name = pick.choice([*some, "number", "number", *heavy] if heavy else [*some, "flip", "whole", "whole"])
        data = some[name](pick, data)
        names.append(name)
    return ", ".join(names), data
