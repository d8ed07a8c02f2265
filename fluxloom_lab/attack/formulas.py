"""Formulas by a grammar: what arrays, loops and a plain evaluation make of the same text.

A trial makes formulas together with functions of numbers that say what they mean, without the code of the package.
Half of the trials spoil the text, which has to be refused or understood, with no other outcome.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

import numpy as np

import fluxloom as fl
from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.values.expressions import Expression
from fluxloom.values.kernel_text import kernel_formula
from fluxloom_lab.attack.frame import Trial

__all__ = ["act", "act_compiled"]

NAMES = ("x", "y", "t")
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.7, 1e-300, 5e-324, 1e300, math.inf, -math.inf, math.nan, 7.0)
CLOSE = 1e-9
_IN_UNIT = 25
"""Formulas that are compiled together."""

Meaning = Callable[[float, float, float], float]


@dataclass(frozen=True)
class Formula:
    """A text and what it means.

    Attributes
    ----------
    text
        As a case has it.
    means
        Returns its value, of ``x``, ``y`` and ``t``.
    """

    text: str
    means: Meaning


def _safe(function: Callable[..., float]) -> Callable[..., float]:
    """Return a function of numbers as IEEE 754 has it, which raises nothing."""

    def called(*given: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(*(np.float64(value) for value in given)))

    return called


_ONE = {
    "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "abs": np.abs,
    "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "atan": np.arctan, "asin": np.arcsin, "sinh": np.sinh,
}  # fmt: skip
_TWO = {"hypot": np.hypot, "atan2": np.arctan2, "min": np.minimum, "max": np.maximum}
_SIGNS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


class Grammar:
    """Makes formulas at random.

    Parameters
    ----------
    pick
        The generator.
    """

    def __init__(self, pick: Random) -> None:
        self.pick = pick

    def number(self, depth: int) -> Formula:
        """Return a formula with a number as its value."""
        pick = self.pick
        if depth <= 0 or pick.random() < 0.15:
            return self._leaf()
        kind = pick.choice(("sign", "sign", "sign", "one", "two", "minus", "power", "where", "if", "test"))
        a, b = self.number(depth - 1), self.number(depth - 1)
        match kind:
            case "sign":
                sign = pick.choice(list(_SIGNS))
                return self._of(f"({a.text} {sign} {b.text})", _safe(_SIGNS[sign]), a, b)
            case "one":
                name = pick.choice(list(_ONE))
                return self._of(f"{name}({a.text})", _safe(_ONE[name]), a)
            case "two":
                name = pick.choice(list(_TWO))
                return self._of(f"{name}({a.text}, {b.text})", _safe(_TWO[name]), a, b)
            case "minus":
                return self._of(f"(-{a.text})", lambda v: -v, a)
            case "power":
                n = pick.choice((0, 1, 2, 3, 7))
                return self._of(f"({a.text} ** {n})", _safe(lambda v: np.power(v, np.float64(n))), a)
            case "test":
                return self.test(depth - 1)
        test = self.test(depth - 1)
        text = f"where({test.text}, {a.text}, {b.text})"
        text = text if kind == "where" else f"({a.text} if {test.text} else {b.text})"
        return self._of(text, lambda c, v, w: v if c else w, test, a, b)

    def test(self, depth: int) -> Formula:
        """Return a formula whose value is 1 or 0."""
        pick = self.pick
        a, b = self.number(depth - 1), self.number(depth - 1)
        if depth > 0 and pick.random() < 0.4:
            c, d = self.test(depth - 1), self.test(depth - 1)
            word = pick.choice(("and", "or", "&", "|", "not", "~"))
            if word in ("not", "~"):
                return self._of(f"({word} ({c.text}))", lambda v: float(not v), c)
            both = word in ("and", "&")
            means = (lambda v, w: float(bool(v) and bool(w))) if both else (lambda v, w: float(bool(v) or bool(w)))
            return self._of(f"(({c.text}) {word} ({d.text}))", means, c, d)
        sign = pick.choice(("<", "<=", ">", ">="))
        tests = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
        return self._of(f"({a.text} {sign} {b.text})", _safe(tests[sign]), a, b)

    def _leaf(self) -> Formula:
        k = self.pick.randrange(len(NAMES) + 2)
        if k < len(NAMES):
            return Formula(NAMES[k], lambda *given: given[k])
        if k == len(NAMES):
            return Formula("pi", lambda *_: math.pi)
        text = self.pick.choice(("0.5", "2", "3.0", "0", "1e-3", "1e10", "10"))
        return Formula(text, lambda *_: float(text))

    @staticmethod
    def _of(text: str, function: Callable[..., float], *parts: Formula) -> Formula:
        return Formula(text, lambda *given: function(*(part.means(*given) for part in parts)))


def _spoilt(pick: Random, text: str) -> str:
    """Return a text with letters dropped, added, or others in their places."""
    letters = list(text)
    for _ in range(pick.choice((1, 1, 2, 5))):
        place = pick.randrange(len(letters) + 1)
        letters[place : place + pick.choice((0, 1, 1, 3))] = pick.choice(
            ("", "(", ")", ",", "**", "//", "%", "==", ".", "_", "e", "1e", "z", "x", "'", "lambda: ", "\x00", "\n",
             "é", "[0]", "__import__('os')", "9" * 400, "0x", "1j", "True", ":=", "~", "&", "not ", "if ", "****", "#")
        )  # fmt: skip
    return "".join(letters)


def _places(pick: Random) -> np.ndarray:
    """Return values of the variables, ``(n, 3)``, special ones too."""
    rows = [[pick.choice(SPECIAL) if pick.random() < 0.5 else pick.uniform(-2, 2) for _ in NAMES] for _ in range(40)]
    return np.array(rows)


def _close(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return where two arrays agree; what rounds around a jump is left to the caller."""
    with np.errstate(all="ignore"):
        return np.isclose(a, b, rtol=CLOSE, atol=1e-300, equal_nan=True) | (np.abs(a - b) < 1e-12)


def act(trial: Trial) -> Iterator[str]:
    """Compare formulas in arrays with what they mean, or spoil one."""
    pick = trial.random()
    made = Grammar(pick).number(pick.choice((1, 2, 3, 4)))
    places = _places(pick)
    if pick.random() < 0.5:
        text = _spoilt(pick, made.text)
        try:
            found = Expression(text, NAMES)(*places.T)
        except CaseError:
            trial.counts["refused"] += 1
            return
        trial.counts["taken"] += 1
        if found.shape != (len(places),) or found.dtype != np.float64:
            yield f"{text!r}: {found.dtype} {found.shape}"
        _loop([text], places)
        return
    trial.counts["compared"] += 1
    yield from _compared([made], places, "reference")


def act_compiled(trial: Trial) -> Iterator[str]:
    """Compare formulas in a compiled loop with what they mean."""
    pick = trial.random()
    made = [Grammar(pick).number(pick.choice((1, 2, 3))) for _ in range(_IN_UNIT)]
    trial.counts["compared"] += len(made)
    yield from _compared(made, _places(pick), "cpu")


def _compared(made: list[Formula], places: np.ndarray, device: str) -> Iterator[str]:
    wanted = np.array([[one.means(*row) for one in made] for row in places.tolist()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrays = np.stack([Expression(one.text, NAMES)(*places.T) for one in made], axis=1)
        loops = _loop([one.text for one in made], places, device)
    for name, found in (("arrays", arrays), ("loops", loops)):
        if found is None:
            continue
        for k, one in enumerate(made):
            bad = np.flatnonzero(~_close(found[:, k], wanted[:, k]))
            if len(bad) > (0 if name == "arrays" else 2):
                n = bad[0]
                given = dict(zip(NAMES, places[n].tolist(), strict=True))
                yield f"{name}: {one.text} is {found[n, k]!r} at {given}, not {wanted[n, k]!r} ({len(bad)} places)"


def _loop(texts: list[str], places: np.ndarray, device: str = "reference") -> np.ndarray | None:
    """Return what loops make of formulas, ``(n, formulas)``; None where Python refuses to go on."""
    context = fl.Context(device, threads=1)
    points = context.set(len(places), "points")
    at, out = context.dat(points, places), context.dat(points, np.zeros((len(places), 1)))
    found = []
    loops = [fl.Loop(_value, points, at, out, formula=kernel_formula(Expression(text, NAMES))) for text in texts]
    for loop in loops:
        try:
            loop()
        except FluxloomError:
            if device == "reference":  # where Python raises: an overflow, a division by zero
                return None
            raise
        found.append(out.read().reshape(-1))
    return np.stack(found, axis=1)


@fl.kernel
def _value(at: fl.Read, out: fl.Write, *, formula: fl.Const[fl.Func]):
    """Set ``out = formula(at)``."""
    out[0] = formula(at[0], at[1], at[2])
