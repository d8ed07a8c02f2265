"""What is refused of strategies, where, and with what hint; what is part of the code and what is not."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import AccessError, KernelError
from fluxloom.kernel import ir
from tests.conformance.strategies import Gas, Rusanov, euler

from .conftest import Loader
from .interpreter import agree

SHAPES = {"q": ir.ArgShape(None, (2,), ir.Kind.REAL), "r": ir.ArgShape(None, (2,), ir.Kind.REAL)}

RECORDS = """
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, ClassVar, Protocol
from fluxloom.kernel import Func
NUMBER = 0.5
@dataclass(frozen=True)
class Gas:
    gamma: float = 1.4
    @func
    def twice(self):
        return 2.0 * self.gamma
    def plain(self):
        return self.gamma
@dataclass(frozen=True)
class Roe:
    fix: float = 0.1
    gas: Gas = Gas()
    order: int = 2
    weights: tuple[float, ...] = (0.5, 0.25)
    name: str = "roe"
    other: object = None
    @func
    def __call__(self, q):
        return self.fix * q[0] * self.gas.gamma + self.order
    @func
    def twice(self, q):
        return 2.0 * self(q)
    @property
    def table(self):
        return tuple(w * self.order for w in self.weights)
    @property
    def wrong(self):
        return self.gas.gamma - 1.0
    @property
    def failing(self):
        return self.weights[7]
@func
def formula(q):
    return q[0]
def plain(q):
    return q[0]
@dataclass
class Loose:
    @func
    def __call__(self, q):
        return q[0]
"""
KERNEL = """
@kernel
def k_(q: Read, r: Write, *, flux: Const[{kind}]):
    r[0] = 0.0
    r[1] = {value}
"""


def lower(load: Loader, kind: str, value: str, given: str, more: str = "") -> ir.LoweredKernel:
    module = load(RECORDS + more + KERNEL.format(kind=kind, value=value))
    return module.k_.lower(SHAPES, {"flux": eval(given, {**vars(module), "np": np})})


# annotation, value in the kernel, what is given, message
REFUSED = [
    ("Func", "flux(q)", "Roe", "'flux' is the class Roe, not one of its instances"),
    ("Func", "flux(q)", "plain", "'flux' is 'plain', an ordinary Python function"),
    ("Func", "flux(q)", "lambda q: q[0]", "an ordinary Python function"),
    ("Func", "flux(q)", "Roe().twice", "'flux' is a method of a Roe"),
    ("Func", "flux(q)", "Loose()", "'flux' is a Loose, a dataclass that is not frozen"),
    ("Func", "flux(q)", "Gas()", "'flux', a Gas, cannot be called"),
    ("Func", "flux(q)", "1.5", "'flux' is 1.5: no @func and no record"),
    ("Func", "flux(q)", "None", "'flux' is None: no @func and no record"),
    ("Func", "flux(q)", "k_", "'flux' is a kernel"),
    ("Func", "flux(q)", "Roe(weights=np.ones(2))", "the field flux.weights is an array of shape (2,)"),
    ("Func", "flux(q)", "Roe(other=[1.0])", "the field flux.other is a list"),
    ("Func", "flux(q)", "Roe(other=({1: 2},))", "the field flux.other[0] is a dict"),
    ("Func", "flux(q)", "Roe(other=Loose())", "'flux.other' is a Loose, a dataclass that is not frozen"),
    ("Func", "flux(q)", "Roe(fix='small')", "the field flux.fix is float but holds 'small'"),
    ("Func", "flux(q)", "Roe(fix=None)", "the field flux.fix is float but holds None"),
    ("Func", "flux(q)", "Roe(fix=np.ones(1))", "the field flux.fix is float but holds an array"),
    ("Func", "flux(q)", "Roe(fix=True)", "the field flux.fix is float but holds True"),
    ("Func", "flux(q)", "Roe(order=2.0)", "the field flux.order is int but holds 2.0"),
    ("Func", "flux(q)", "Roe(order=2**63)", "the field flux.order does not fit in 64 bits"),
    ("Func", "flux(q)", "Roe(gas=Gas(gamma='air'))", "the field flux.gas.gamma is float but holds 'air'"),
    ("Func", "flux(q, q)", "Roe()", "flux takes 1 arguments here, not 2"),
    ("Func", "flux(q, q)", "formula", "flux takes 1 arguments here, not 2"),
    ("Gas", "flux.twice()", "Roe()", "'flux' is a Roe, not a Gas"),
    ("Gas | None", "flux.twice()", "None", "'flux' is None here"),
    ("Gas", "flux.plain()", "Gas()", "'plain' of Gas is an ordinary Python method"),
    ("Gas", "flux", "Gas()", "a number is needed here, not a record (Gas)"),
    ("Gas", "flux.twice", "Gas()", "the function 'twice' is used as a value"),
    ("Gas", "flux[0]", "Gas()", "a record (Gas) is indexed"),
    ("Func", "flux.fixx", "Roe()", "Roe has no 'fixx'; did you mean 'fix'?"),
    ("Func", "flux.name", "Roe()", "'Roe.name' is 'roe', which a kernel cannot use"),
    ("Func", "flux.other", "Roe()", "'Roe.other' is None here"),
    ("Func", "flux.other + 1.0", "Roe(other=plain)", "which a kernel cannot use"),
    ("Func", "flux.wrong", "Roe()", "the property 'wrong' of Roe reads 'gamma', which is known at run time only"),
    ("Func", "flux.failing", "Roe()", "the property 'failing' of Roe cannot be evaluated: IndexError"),
    ("Func", "flux.weights[2]", "Roe()", "the index 2 of 'flux_weights' is out of bounds"),
    ("Func", "flux.table", "Roe()", "the array 'Roe_table' is used without all its indices"),
    ("tuple[Func, ...]", "flux[0](q)", "[Roe()]", "not a tuple"),
    ("tuple[Func, ...]", "flux[0](q)", "Roe()", "not a tuple"),
    ("tuple[Func, ...]", "flux[0](q)", "()", "the index 0 of 'the tuple' is out of bounds (extent 0)"),
    ("tuple[Func, ...]", "flux[0](q)", "(Roe(), plain)", "'flux[1]' is 'plain', an ordinary Python function"),
    ("tuple[Func, ...]", "flux[int(q[0])](q)", "(Roe(),)", "a tuple is indexed with a constant"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "given", "message"), REFUSED)
def test_refused(load: Loader, kind: str, value: str, given: str, message: str) -> None:
    with pytest.raises(KernelError, match=re.escape(message)) as found:
        lower(load, kind, value, given)
    assert "^" in str(found.value)


# more text before the kernel, annotation, value in the kernel, message: all known when the kernel is decorated
AT_DECORATION = [
    ("", "Gas", "flux.twice(q)", "flux.twice takes 0 arguments, not 1"),
    ("", "Gas", "flux.gama", "Gas has no 'gama'; did you mean 'gamma'?"),
    ("", "Roe", "flux(q, q)", "flux takes 1 arguments, not 2"),
    ("", "tuple[Roe, ...]", "flux[0](q, q)", "flux[0] takes 1 arguments, not 2"),
    ("class P(Protocol):\n    def __call__(self, q): ...\n", "P", "flux(q, 1)", "flux takes 1 arguments, not 2"),
    ("class P(Protocol):\n    def __call__(self, q): ...\n", "P", "flux.waves(q)", "P has no 'waves'"),
    ("", "Roe", "flux(q, key=1)", "keyword arguments are not part"),
    ("", "float", "flux(q)", "'flux' is not a function"),
    ("", "float", "flux.x", "attribute access on 'flux' is not part"),
    ("", "Roe", "1.0 if q is None else 0.0", "'q' is never None"),
    ("", "Roe", "1.0 if flux is None else 0.0", "'flux' is never None"),
    ("", "Roe", "Loose()(q)", "'Loose' is a dataclass that is not frozen"),
    ("", "Roe", "Gas(1.0, 2.0).gamma", "Gas takes 1 arguments by position, not 2"),
    ("@dataclass(frozen=True)\nclass A:\n    x: float\n    def __post_init__(self): pass\n", "Roe", "A(1.0).x",
     "A has a __post_init__"),
    ("@dataclass(frozen=True, kw_only=True)\nclass A:\n    x: float\n", "Roe", "A(1.0).x",
     "A takes 0 arguments by position, not 1"),
    ("@dataclass(frozen=True)\nclass A:\n    x: float = field(init=False)\n", "Roe", "A().x",
     "the field 'x' of A is not given to its constructor"),
    ("", "Roe", "Gas(gama=1.0).gamma", "Gas has no field 'gama'; did you mean 'gamma'?"),
    ("", "Roe", "Gas(1.0, gamma=1.0).gamma", "Gas is given 'gamma' twice"),
    ("@dataclass(frozen=True)\nclass A:\n    x: float\n", "Roe", "A().x", "A is not given 'x'"),
    ("", "Roe", "Roe.plain(flux, q)", "attribute access on 'Roe' is not part"),
    ("", "Roe", "super().twice(q)", "super is not part of the kernel language"),
    ("class A(tuple): pass\n", "Roe", "A(q)", "'A' is no record"),
    ("@dataclass(frozen=True)\nclass A:\n    __x: float\n    @func\n    def y(self):\n        return self.__x\n", "Roe",
     "0.0", "'__x' is another name in each class"),
    ("@dataclass(frozen=True, init=False)\nclass A:\n    x: float\n", "Roe", "A(1.0).x",
     "A has a constructor of its own"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "kind", "value", "message"), AT_DECORATION)
def test_refused_at_decoration(load: Loader, more: str, kind: str, value: str, message: str) -> None:
    with pytest.raises(KernelError, match=re.escape(message)) as found:
        load(RECORDS + more + KERNEL.format(kind=kind, value=value))
    assert "^" in str(found.value)


def test_places(load: Loader) -> None:
    """The caret is in the formula, the note says which call of the kernel leads there."""
    module = load(RECORDS + """
@dataclass(frozen=True)
class Wrong:
    @func
    def deeper(self, q):
        return q[2]
    @func
    def __call__(self, q):
        return self.deeper(q)
""" + KERNEL.format(kind="Func", value="flux(q)"))  # fmt: skip
    with pytest.raises(KernelError) as found:
        module.k_.lower(SHAPES, {"flux": module.Wrong()})
    name = module.k_.source.filename
    lines = {text: k for k, text in enumerate(Path(name).read_text(encoding="utf-8").split("\n"), 1)}
    assert found.value.line == lines["        return q[2]"]
    places = [lines["        return self.deeper(q)"], lines["    r[1] = flux(q)"]]
    assert found.value.__notes__ == [f"in a call from {name}:{line}" for line in places]


CONTRACT = [
    ("q[0] = 1.0", "'q' is Read but is assigned"),
    ("r[0] += 1.0", "'r' is Write but is read before it is written"),
    ("r[0] = q[0]", "r[1] is not written on every path"),
]


@pytest.mark.parametrize(("body", "message"), CONTRACT)
def test_the_contract_holds_in_formulas(load: Loader, body: str, message: str) -> None:
    module = load(RECORDS + f"""
@dataclass(frozen=True)
class Writes:
    @func
    def __call__(self, q, r):
        {body}
@kernel
def k_(q: Read, r: Write, *, flux: Const[Func]):
    flux(q, r)
""")  # fmt: skip
    with pytest.raises(AccessError, match=re.escape(message)):
        module.k_.lower(SHAPES, {"flux": module.Writes()})


def test_recursion(load: Loader) -> None:
    """A record may hold others of its class, but not call itself."""
    module = load(RECORDS + """
@dataclass(frozen=True)
class Sum:
    parts: tuple[Func, ...]
    again: bool = False
    @func
    def __call__(self, q):
        total = 0.0
        for k in range(len(self.parts)):
            total += self.parts[k](q)
        if self.again:
            total += self(q)
        return total
""" + KERNEL.format(kind="Func", value="flux(q)"))  # fmt: skip
    roe, total = module.Roe, module.Sum
    lowered = module.k_.lower(SHAPES, {"flux": total((total((roe(), module.formula)), roe(), total(())))})
    assert [c.name for c in lowered.constants] == ["flux_parts_0_parts_0_fix", "flux_parts_0_parts_0_gas_gamma",
                                                   "flux_parts_1_fix", "flux_parts_1_gas_gamma"]  # fmt: skip
    with pytest.raises(KernelError, match="'__call__' calls itself"):
        module.k_.lower(SHAPES, {"flux": total((total((roe(),), again=True),))})


def digests(load: Loader, value: str = "flux(q)") -> tuple[ModuleType, Any]:
    module = load(RECORDS + KERNEL.format(kind="Func", value=value))
    return module, lambda flux: module.k_.lower(SHAPES, {"flux": flux})


def test_what_is_part_of_the_code(load: Loader) -> None:
    """Only fields annotated float are not; nothing is lowered twice."""
    module, lowered = digests(load, "flux(q) + flux.table[0]")
    roe, gas = module.Roe, module.Gas
    first = lowered(roe())
    assert lowered(roe(0.2, gas(1.3))) is first
    assert lowered(roe(np.float64(0.3), gas(2))) is first
    assert [c.name for c in first.constants] == ["flux_fix", "flux_gas_gamma"]
    others = [lowered(roe(order=3)), lowered(roe(weights=(0.25, 0.25))), lowered(roe(weights=(0.0, 0.25))),
              lowered(roe(weights=(-0.0, 0.25)))]  # fmt: skip
    assert len({item.digest for item in (first, *others)}) == 5


@pytest.mark.parametrize("names", ["flux_fix: float", "flux_fix: Const[float] = 1.0", "flux_gas_gamma: int = 1"])
def test_names_do_not_collide(load: Loader, names: str) -> None:
    module = load(RECORDS + KERNEL.format(kind="Func", value="flux(q)").replace("*, ", f"*, {names}, "))
    with pytest.raises(KernelError, match="two constants are called 'flux_"):
        module.k_.lower(SHAPES, {"flux": module.Roe()})


def test_fields_do_not_collide(load: Loader) -> None:
    module = load(RECORDS + """
@dataclass(frozen=True)
class Twice:
    gas: Gas = Gas()
    gas_gamma: float = 1.0
    @func
    def __call__(self, q):
        return self.gas.gamma + self.gas_gamma
""" + KERNEL.format(kind="Func", value="flux(q)"))  # fmt: skip
    with pytest.raises(KernelError, match="two constants are called 'flux_gas_gamma'"):
        module.k_.lower(SHAPES, {"flux": module.Twice()})


def test_protocols_are_followed(load: Loader) -> None:
    module = load(RECORDS + """
class Flux(Protocol):
    order: int
    def __call__(self, q): ...
    def twice(self, q): ...
@dataclass(frozen=True)
class Short:
    order: int = 1
    @func
    def __call__(self, q):
        return q[0]
@dataclass(frozen=True)
class Long(Short):
    @func
    def twice(self, q, r):
        return q[0]
@dataclass(frozen=True)
class Plain(Roe):
    def __call__(self, q):
        return 1.0
""" + KERNEL.format(kind="Flux", value="flux.twice(q)"))  # fmt: skip
    module.k_.lower(SHAPES, {"flux": module.Roe()})
    for given, message in [(module.Short(), "is no Flux: it has no 'twice'"), (module.formula, "not a Flux"),
                           (module.Long(), "flux.twice takes 2 arguments, its protocol says 1"),
                           (module.Plain(), "the __call__ of 'flux', a Plain, is no @func")]:  # fmt: skip
        with pytest.raises(KernelError, match=re.escape(message)):
            module.k_.lower(SHAPES, {"flux": given})


PROPERTIES = [
    ("return 2.0 * self.host()", "reads 'x'"),
    ("return getattr(self, 'x', 1.0)", "reads 'x'"),
    ("try:\n            return self.x\n        except Exception:\n            return 1.0", "reads 'x'"),
    ("return super().of_base", "reads 'x'"),
    ("return self.cached", "reads 'x'"),
    ("return self.inner[0].x", "reads 'x'"),
    ("return 1.0 if self == self.inner[0] else 2.0", "reads 'x'"),
    ("return float(hash(self))", "reads 'x'"),
    ("return float(len(str(self)))", "reads 'x'"),
    ("return 1.0 if self in self.inner else 2.0", "reads 'x'"),
    ("return self._hidden", "cannot be evaluated: AttributeError"),
    ("return self.size * len(self.inner) + self.formula(2)", ""),
]


@pytest.mark.parametrize(("body", "message"), PROPERTIES)
def test_properties_are_never_those_of_other_values(load: Loader, body: str, message: str) -> None:
    """Whatever way a property takes to a field that changes at run time, it is refused."""
    module = load(RECORDS + f"""
@dataclass(frozen=True)
class Base:
    x: float = 0.5
    inner: tuple = ()
    size: int = 3
    def __post_init__(self):
        object.__setattr__(self, "_hidden", 2.0 * self.x)
    def host(self):
        return self.x
    @func
    def formula(self, k):
        return k * self.size
    @property
    def of_base(self):
        return self.x
    @cached_property
    def cached(self):
        return self.x + 1.0
@dataclass(frozen=True)
class Derived(Base):
    @property
    def y(self):
        {body}
""" + KERNEL.format(kind="Derived", value="flux.y"))  # fmt: skip
    given = module.Derived(inner=(module.Derived(),))
    _ = given.cached
    if not message:
        assert module.k_.lower(SHAPES, {"flux": given}).constants == ()
        return
    with pytest.raises(KernelError, match=message):
        module.k_.lower(SHAPES, {"flux": given})


def test_properties_that_are_formulas(load: Loader) -> None:
    """A property of a @func is computed at run time, in records that a kernel builds too."""
    module = load(RECORDS + """
@dataclass(frozen=True, kw_only=True)
class Law:
    rate: float = 0.5
    @property
    @func
    def time(self):
        return 1.0 / self.rate
    @func
    def __call__(self, q):
        s = self if q[0] > 0.0 else Law(rate=q[1])
        return s.time + Law(rate=2.0).time
""" + KERNEL.format(kind="Law", value="flux(q) + flux.time"))  # fmt: skip
    lowered = agree(module.k_, {"q": np.array([1.0, 3.0]), "r": np.zeros(2)}, baked={"flux": module.Law()},
                    fields={"flux_rate": 0.5})  # fmt: skip
    assert [c.name for c in lowered.constants] == ["flux_rate"]
    agree(module.k_, {"q": np.array([-1.0, 3.0]), "r": np.zeros(2)}, baked={"flux": module.Law(rate=4.0)},
          fields={"flux_rate": 4.0})  # fmt: skip


def test_functions_and_records_are_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(euler)) is euler
    assert pickle.loads(pickle.dumps(Rusanov(Gas(1.3)))) == Rusanov(Gas(1.3))
    assert copy.deepcopy((euler, Rusanov(Gas())))[0] is euler


def test_records_of_the_module(load: Loader) -> None:
    """They are as they were at the decoration, with all fields baked in; so are class attributes and defaults."""
    module = load(RECORDS + """
ROE = Roe(0.25)
EVERY = (ROE, Gas(3.0))
@dataclass(frozen=True, slots=True)
class Slotted:
    LIMIT: ClassVar[float] = 4.0
    TABLE = (1.0, 2.0)
    x: Annotated[float, "m"]
    y: float = 2.0
    z: Const[float] = 8.0
    @func
    def __call__(self, q):
        return Slotted(self.x, self.y).total() + self.TABLE[1]
    @func
    def total(self):
        return self.x + self.y + self.z + self.LIMIT
@kernel
def k_(q: Read, r: Write, *, flux: Const[Func] = Slotted(1.0)):
    r[0] = ROE(q) + EVERY[0].fix + EVERY[1].gamma + ROE.gas.twice() + ROE.twice(q) + Roe.twice(ROE, q)
    r[1] = flux(q)
""")  # fmt: skip
    lowered = module.k_.lower(SHAPES, {})
    assert [c.name for c in lowered.constants] == ["flux_x", "flux_y"]
    r = np.zeros(2)
    module.k_([1.0, 1.0], r)
    value = 0.25 * 1.4 + 2
    assert r == pytest.approx([value + 0.25 + 3.0 + 2.8 + 4 * value, 1.0 + 2.0 + 8.0 + 4.0 + 2.0])
