"""Texts of random kernels, and modules of texts."""

from __future__ import annotations

import importlib.util
import random
import textwrap
from pathlib import Path
from types import ModuleType

__all__ = ["HEADER", "TEMPLATE", "Generator", "indented", "load_module"]

HEADER = """\
import math
import numpy as np
from fluxloom.kernel import intrinsics as fl
from fluxloom.core.access import RW, Const, Inc, Max, Min, Read, Write
from fluxloom.kernel import func, kernel
"""

def load_module(folder: Path, text: str, name: str = "module") -> ModuleType:
    """Return the module of a text, saved to a file, so that `inspect` finds its source."""
    path = folder / f"{name}.py"
    path.write_text(HEADER + textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REALS = ["q[0]", "q[1]", "q[2]", "nu", "1.5", "0.25", "-2.0", "a", "b", "w[i]", "w[k]", "C[i]", "v[0]", "m[i][1]",
         "p.low", "p.high", "p.width()", "law.rate", "law.range.high", "law.weights[i]", "law.table[k]",
         "laws[1].rate"]  # fmt: skip
INTS = ["n[0]", "n[1]", "i", "k", "2", "3", "-1", "len(q)", "D[i]", "order[i]", "law.order", "len(laws)", "law.CODE"]


class Generator:
    """Writes random statements; the depth limits their size."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, *choices: str) -> str:
        """Return one of some words."""
        return self.random.choice(choices)

    def integer(self, depth: int) -> str:
        """Return an expression of whole numbers."""
        def e() -> str:
            return self.integer(depth - 1)

        if depth <= 0 or self.random.random() < 0.3:
            return self.one(*INTS)
        kinds = [
            lambda: f"({e()} {self.one('+', '-', '*')} {e()})",
            lambda: f"({e()} {self.one('//', '%')} {self.one('3', '-3')})",
            lambda: f"min({e()}, {e()}, 5)", lambda: f"abs({e()})", lambda: f"(({e()}) % 3) ** 2",
            lambda: f"pick({e()}, {e()})", lambda: f"(-{e()})", lambda: f"({e()} if {self.test(depth - 1)} else {e()})",
            lambda: f"fl.select({self.test(depth - 1)}, {e()}, {e()})",
            lambda: f"int(fl.tanh({self.real(depth - 1)}) * 5)",
            lambda: f"({e()} if extra is None else {e()})",
        ]  # fmt: skip
        return self.random.choice(kinds)()

    def test(self, depth: int) -> str:
        """Return a test."""
        if depth <= 0:
            return self.one("flag", "i > 1", "q[0] < q[i]", "n[0] == 2", "a >= b")
        kinds = [
            lambda: f"{self.real(depth - 1)} {self.one('<', '<=', '>', '>=')} {self.real(depth - 1)}",
            lambda: f"{self.integer(depth - 1)} {self.one('<', '==', '!=')} {self.integer(depth - 1)}",
            lambda: f"({self.test(depth - 1)} {self.one('and', 'or')} {self.test(depth - 1)})",
            lambda: f"(not {self.test(depth - 1)})",
            lambda: f"{self.real(depth - 1)} < {self.real(depth - 1)} < {self.real(depth - 1)}",
        ]
        return self.random.choice(kinds)()

    def real(self, depth: int) -> str:
        """Return an expression of reals."""
        def e() -> str:
            return self.real(depth - 1)

        if depth <= 0 or self.random.random() < 0.3:
            return self.one(*REALS)
        kinds = [
            lambda: f"({e()} {self.one('+', '-', '*')} {e()})", lambda: f"({e()} * {self.integer(depth - 1)})",
            lambda: f"({e()} / (1.0 + abs({e()})))", lambda: f"fl.sqrt(abs({e()}))", lambda: f"fl.tanh({e()}) ** 3",
            lambda: f"(2.0 + fl.tanh({e()})) ** -2", lambda: f"({e()} if {self.test(depth - 1)} else {e()})",
            lambda: f"pick({e()}, {e()})", lambda: f"max({e()}, {e()})", lambda: f"({self.integer(depth - 1)} / 4)",
            lambda: f"({e()} % 0.75)", lambda: f"(-{e()})", lambda: f"fl.floor({e()})",
            lambda: f"law({e()}, {e()})", lambda: f"law.around({e()}).width()", lambda: f"formula({e()}, {e()})",
            lambda: f"Pair({e()}, {self.integer(depth - 1)}).turned().{self.one('low', 'high')}",
            lambda: f"({e()} if extra is None else extra[0] + {e()})", lambda: f"laws[0]({e()}, p.low)",
        ]  # fmt: skip
        return self.random.choice(kinds)()

    def statement(self, depth: int) -> str:
        """Return a statement."""
        r = self.real
        kinds = [
            lambda: f"{self.one('a', 'b', 'w[i]', 'w[k]', 'r[0]', 'r[i]', 'v[1]')} = {r(3)}",
            lambda: f"{self.one('a', 'w[0]', 'r[1]', 'v[0]', 'm[i][0]')} {self.one('+=', '-=', '*=')} {r(3)}",
            lambda: f"k = ({self.integer(2)}) % 3", lambda: f"a, b = {r(2)}, {r(2)}",
            lambda: f"a, w[0] = both({r(2)}, {r(2)})", lambda: f"w = [{r(2)}, {r(2)}, {r(1)}]",
            lambda: f"bump(v, {r(2)})", lambda: "w[0], w[1] = w[1], w[0]", lambda: "order = [2, 0, 1]",
            lambda: f"{self.one('a', 'b')} = {r(4)}",
            lambda: f"p = Pair({r(2)}, {r(2)})", lambda: "p = p.turned()", lambda: f"p = law.around({r(2)})",
            lambda: f"p, a = law.range.mean(p), {r(2)}", lambda: "s = p\np = Pair(s.high, p.low)",
            lambda: f"for z in range(len(laws)):\n    if k == z:\n        a = laws[z]({r(2)}, {r(1)})",
            lambda: f"if extra is not None and {self.test(1)}:\n    b = extra[1] + {r(2)}",
        ]  # fmt: skip
        if depth > 0:
            kinds += [
                lambda: f"if {self.test(2)}:\n{self.block(depth)}\nelse:\n{self.block(depth)}",
                lambda: f"for {self.one('j', 'jj')}{depth} in range(2):\n{self.block(depth)}",
                lambda: f"for h{depth} in range(n[0] % 3):\n{self.block(depth)}",
                lambda: f"c{depth} = 0\nwhile c{depth} < 2 and {self.one('flag', 'a < b', 'not flag')}:\n"
                f"{self.block(depth)}\n    c{depth} += 1",
            ]  # fmt: skip
        return self.random.choice(kinds)()

    def block(self, depth: int) -> str:
        """Return an indented block of statements."""
        lines = "\n".join(self.statement(depth - 1) for _ in range(self.random.randint(1, 3)))
        return indented(lines)


def indented(block: str) -> str:
    """Return a block that is indented once more."""
    return "\n".join("    " + line for line in block.split("\n"))


TEMPLATE = """
from dataclasses import dataclass
from fluxloom.kernel import Func
C = (0.5, -1.5, 2.5)
D = (1, 2, 0)
@func
def pick(x, y):
    if x < y:
        return x
    z = y * 2
    return z - y
@func
def both(x, y):
    s = x + y
    return s, x - s
@func
def bump(p, x):
    p[0] += x
    p[1] = p[0] * 0.5
@dataclass(frozen=True)
class Pair:
    low: float
    high: float
    @func
    def width(self):
        return self.high - self.low
    @func
    def turned(self):
        return Pair(-self.high, -self.low)
    @func
    def mean(self, other):
        if other.low < self.low:
            return Pair(other.low, 0.5 * (self.high + other.high))
        return Pair(self.low, other.high)
@dataclass(frozen=True)
class Law:
    CODE = 7
    rate: float = 0.75
    order: int = 2
    range: Pair = Pair(-0.5, 1.25)
    weights: tuple[float, ...] = (0.5, -1.5, 2.5)
    inner: object = pick
    @property
    def table(self):
        return tuple(w * self.order for w in self.weights)
    @func
    def around(self, x):
        total = x
        for k in range(self.order):
            total += self.weights[k] * self.rate
        return Pair(total, x + self.range.high).mean(self.range)
    @func
    def __call__(self, x, y):
        if x < self.rate:
            return self.inner(x, y) * self.range.width()
        return x - self.rate * y
LAWS = (Law(order=1), Law(rate=1.5, order=3, weights=(1.0, 2.0, 3.0), inner=Law(-0.25)))
@kernel
def k_(
    q: Read, n: Read, x: RW, r: RW, extra: Read | None, *, nu: float, flag: bool,
    law: Const[Law] = Law(1.25), formula: Const[Func] = pick, laws: Const[tuple[Law, ...]] = LAWS,
):
    p = Pair(0.5, 1)
    s = p
    a = 0
    b = 1.0
    k = 1
    w = [0.5, 1.5, 2.5]
    m = fl.zeros(3, 2)
    order = [1, 2, 0]
    v = x[1]
    for i in range(3):
{body}
    r[2] += a + b + w[0] + w[k] + m[1, 1] + order[0] + v[1] + p.width() + s.low
"""
