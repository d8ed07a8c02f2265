"""Everything outside the kernel language is refused where it stands, with a message and a hint."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fluxloom.core.errors import KernelError
from fluxloom.kernel import ir
from fluxloom_lab.attack.loops.text import HEADER

from .conftest import Loader

REAL = ir.Kind.REAL
SHAPES = {
    "q": ir.ArgShape(None, (4,), REAL),
    "x": ir.ArgShape(2, (3,), REAL),
    "n": ir.ArgShape(None, (2,), ir.Kind.INT),
    "r": ir.ArgShape(None, (4,), REAL),
}

PREAMBLE = """
TABLE = [1.0, 2.0]
class Gas:
    gamma = 1.4
gas = Gas()
name = "air"
def plain(a):
    return a
@func
def one(a):
    return a
@func
def nothing(a):
    a[0] = 1.0
@func
def changing(a):
    a[0] = 2.0
    return a[0]
@func
def mixed(a):
    if a > 0:
        return 1.0, 2.0
    return a
@kernel
def other(q: Read):
    pass
@kernel
def bad(q: Read, x: Read, n: Read, r: RW, *, nu: float, k: int, flag: bool):
"""

# statement (the offending construct starts at «), message; both errors of decoration and of lowering
AT_DECORATION = [
    ("for i in range(3):\n    «break", "break is not"),
    ("for i in range(3):\n    «continue", "continue is not"),
    ("«return", "return is not part of a kernel"),
    ("«with q:\n    pass", "with is not"),
    ("«try:\n    pass\nexcept ValueError:\n    pass", "try is not"),
    ("«raise ValueError", "raise is not"),
    ("«assert True", "assert is not"),
    ("a = 1\n«del a", "del is not"),
    ("«global zz", "global is not"),
    ("«import os", "import is not"),
    ("«from os import path", "import is not"),
    ("«def inner():\n    pass", "a nested function is not"),
    ("«class A:\n    pass", "class is not"),
    ("«match k:\n    case 1:\n        pass", "match is not"),
    ("a = «lambda: 1", "lambda is not"),
    ("a = «[q[i] for i in range(3)]", "a comprehension is not"),
    ("a = «{i for i in range(3)}", "a comprehension is not"),
    ("a = «{i: i for i in range(3)}", "a comprehension is not"),
    ("a = max(«(i for i in range(3)), 2)", "a comprehension is not"),
    ("a = «f'{k}'", "an f-string is not"),
    ("a = «'text'", "a string is not"),
    ("pass\n«'text'", "a string is not"),
    ("a = «{}", "a dict is not"),
    ("a = «{1: 2}", "a dict is not"),
    ("a = «{1, 2}", "a set is not"),
    ("a = q[«1:2]", "a slice is not"),
    ("a = [«*q]", "a starred expression is not"),
    ("a = max(«*q)", "a starred expression is not"),
    ("«*a, b = q[0], q[1]", "a starred expression is not"),
    ("a = («b := 1)", "':=' is not"),
    ("a = («yield)", "yield is not"),
    ("«print(k)", "print is not"),
    ("«plain(k)", "is an ordinary Python function"),
    ("«undefined_name(k)", "is not defined"),
    ("a = «undefined_name", "is not defined"),
    ("a = max(k, «key=k)", "keyword arguments are not"),
    ("a = «q.shape", "attribute access on 'q' is not"),
    ("a = «gas.gamma", "attribute access on 'gas' is not"),
    ("a = «np.linalg", "is used as a value"),
    ("a = «math.sqqrt(nu)", "has no 'sqqrt'; did you mean 'sqrt'"),
    ("«q.flag = 1", "attribute assignment is not"),
    ("a = «1j", "complex numbers are not"),
    ("a = «None", "None is not"),
    ("a = «...", "Ellipsis is not"),
    ("a = «99999999999999999999", "does not fit in 64 bits"),
    ("a = «q is r", "'is' is not"),
    ("a = «k in q", "'in' is not"),
    ("a = «k & 1", "'&' is not"),
    ("a = «k | 1", "'|' is not"),
    ("a = «k ^ 1", "'^' is not"),
    ("a = «k << 1", "'<<' is not"),
    ("a = «k >> 1", "'>>' is not"),
    ("a = «~k", "'~' is not"),
    ("a = «q @ q", "'@' is not"),
    ("a = 1\n«a |= 2", "'|' is not"),
    ("for i in range(3):\n    pass\nelse:\n    «a = 1", "else on a loop"),
    ("i = 0\nwhile i < 3:\n    i += 1\nelse:\n    «a = 1", "else on a loop"),
    ("«a = b = 0", "chained assignment is not"),
    ("«other(q)", "is a kernel"),
    ("a = «TABLE[0]", "is a mutable list"),
    ("a = «name", "(str) cannot be used"),
    ("a = «one", "is used as a value"),
    ("a = «math", "is used as a value"),
    ("a = «one(1, 2)", "takes 1 arguments, not 2"),
    ("a = «fl.sqrt(1.0, 2.0)", "takes 1 arguments, not 2"),
    ("a = «min(k)", "takes 2 or more arguments, not 1"),
    ("«min(k, 1)", "result of this call is not used"),
    ("«k + 1", "has no effect"),
    ("«k = 2", "the constant 'k' is assigned"),
    ("«q = 2", "the parameter 'q' itself is assigned"),
    ("for «k in range(3):\n    pass", "is a parameter"),
    ("for i in range(3):\n    «i = 2", "the loop variable 'i' is assigned"),
    ("for i in range(3):\n    for «i in range(3):\n        pass", "share the variable"),
    ("for i in range(3):\n    pass\na = «i", "read outside its loop"),
    ("for i in «q:\n    pass", "runs over range"),
    ("for «i, j in range(3):\n    pass", "one variable"),
    ("a = «range(3)", "outside a for loop"),
    ("«a: float", "declaration without a value"),
    ("a = q[«-1]", "a negative index"),
    ("«while k < 3:\n    pass", "needs a bound"),
    ("a = 1.0\n«while a > 0.1:\n    a *= 0.5", "needs a bound"),
    ("a = 0\n«while a < 3:\n    if flag:\n        a += 1", "needs a bound"),
    ("a = 0\n«while a < 3:\n    a += 1\n    a = 0", "needs a bound"),
    ("a = 0\n«while a < 3:\n    a += -1", "needs a bound"),
    ("a = 0\n«while a < 3 or flag:\n    a += 1", "needs a bound"),
    ("a = «[[0.0] * 3] * 3", "a repeated list holds scalars only"),
    ("a = 1\nb = «a(2)", "is not a function"),
    ("a = «bad(q)", "calls itself"),
]  # fmt: skip

AT_LOWERING = [
    ("a = q[«4]", "the index 4 of 'q' is out of bounds (extent 4)"),
    ("a = x[«2][0]", "the index 2 of 'x' is out of bounds (extent 2)"),
    ("for i in range(3):\n    a = q[«i - 1]", "the index -1 is negative"),
    ("a = «q[0][1]", "'q' has too many indices"),
    ("a = «x[0] + 1.0", "'x' is used without all its indices"),
    ("a = «x[0, 1]", "a leg and a component are two subscripts"),
    ("a = q[«1.0]", "an index must be an integer"),
    ("a = q[«nu]", "an index must be an integer"),
    ("for i in range(«nu):\n    pass", "an argument of range must be an integer"),
    ("for i in range(0, 4, «k):\n    pass", "step of range must be a constant"),
    ("if flag:\n    a = 1\nr[0] = «a", "may be used before it is assigned"),
    ("for i in range(k):\n    a = 1\nr[0] = «a", "may be used before it is assigned"),
    ("a = 0\nwhile a < k:\n    b = 1\n    a += 1\nr[0] = «b", "may be used before it is assigned"),
    ("r[0] = «a\na = 1", "may be used before it is assigned"),
    ("if «k:\n    pass", "an integer is used as a test"),
    ("if «nu:\n    pass", "a real is used as a test"),
    ("a = 1.0 if «k else 2.0", "an integer is used as a test"),
    ("a = «fl.select(k, 1.0, 2.0)", "a test must be a boolean"),
    ("a = «k and flag", "an integer is used as a test"),
    ("a = «not k", "'not' needs a boolean"),
    ("a = «flag + 1", "needs numbers, not a boolean"),
    ("a = «flag == 1", "a boolean and an integer are mixed"),
    ("a = «flag < flag", "booleans cannot be ordered"),
    ("a = 1.0\n«a = flag", "a boolean and a real are mixed"),
    ("a = 1.0 if flag else 2\n«a[0] = 1.0", "a number is indexed"),
    ("a = «1 if k > 0 else flag", "a boolean and an integer are mixed"),
    ("«r[0] = flag", "a boolean is stored where a real is expected"),
    ("a = [0.0] * «k", "must be a positive constant"),
    ("a = «[]", "an empty list"),
    ("a = «[1.0, [2.0]]", "a list holds numbers, or lists of equal lengths"),
    ("a = [0.0] * 3\na[«3] = 1.0", "the index 3 of 'a' is out of bounds (extent 3)"),
    ("a = [0.0] * 3\n«a[0][1] = 1.0", "'a' has too many indices"),
    ("a = [[1.0, 2.0], [3.0, 4.0]]\nb = «a[0, 1]", "a nested list is indexed a[i][j]"),
    ("a = [[1.0, 2.0], [3.0, 4.0]]\n«a[0] = 1.0", "without all its indices"),
    ("a = [1.0]\n«a = 2.0", "is an array and a number"),
    ("«a, b = q[0], q[1], q[2]", "2 names for 3 values"),
    ("a, b = «nu", "a tuple is needed"),
    ("a = (1.0, 2.0)\nb = a[«k]", "a tuple is indexed with a constant"),
    ("a = «k // 0", "an integer is divided by zero"),
    ("a = «k ** k", "an integer to a power"),
    ("a = «nothing(r)", "returns nothing"),
    ("a = 1.0 + «changing(r)", "writes to its arguments inside an expression"),
    ("a = «len(nu)", "len of a number"),
    ("a = 0\nwhile «a < 3 and one(q[0]) > 0:\n    a += 1", "too complex"),
]  # fmt: skip


def expected(statements: str) -> tuple[str, int, int]:
    """Return the module text with the marker removed, and the marked line and column."""
    body = "\n".join("    " + line for line in statements.split("\n"))
    text = PREAMBLE + body + "\n"
    before = (HEADER + text).split("«")[0]
    line = before.count("\n") + 1
    return text.replace("«", ""), line, len(before) - before.rfind("\n") - 1


def check(error: KernelError, statements: str, message: str, line: int, column: int) -> None:
    assert message in error.message
    text = expected(statements)[0]
    assert error.source_line == (HEADER + text).split("\n")[line - 1]
    assert (error.line, error.column) == (line, column), str(error)
    assert str(error).split("\n")[2].index("^") == column + 4
    assert error.filename.endswith(".py")


@pytest.mark.parametrize(("statements", "message"), AT_DECORATION)
def test_rejected_when_defined(load: Loader, statements: str, message: str):
    text, line, column = expected(statements)
    with pytest.raises(KernelError) as caught:
        load(text)
    check(caught.value, statements, message, line, column)


@pytest.mark.parametrize(("statements", "message"), AT_LOWERING)
def test_rejected_when_lowered(load: Loader, statements: str, message: str):
    text, line, column = expected(statements)
    bad = load(text).bad
    with pytest.raises(KernelError) as caught:
        bad.lower(SHAPES)
    check(caught.value, statements, message, line, column)


SIGNATURES = [
    ("def bad(*q: Read): pass", "no *args"),
    ("def bad(**q: float): pass", "no *args"),
    ("def bad(q: Read = 1): pass", "has no default"),
    ("def bad(q): pass", "'q' has no access mode"),
    ("def bad(q: 'Reed'): pass", "cannot be evaluated"),
    ("def bad(q: float): pass", "'float' is not an access mode"),
    ("def bad(q: Const[float]): pass", "is not an access mode"),
    ("def bad(q: Read, *, nu): pass", "'nu' has no annotation"),
    ("def bad(q: Read, *, nu: str): pass", "is not the type of a constant"),
    ("def bad(q: Read, *, nu: Const): pass", "is not the type of a constant"),
    ("def bad(q: Read, *, nu: Read): pass", "is not the type of a constant"),
    ("def bad(q: Read, *, nu: Const[int] = 1.5): pass", "is not an integer"),
    ("def bad(q: Read, *, nu: float = 'a'): pass", "is not a real number"),
    ("def bad(q: Read, *, nu: Const[list[int]] = (1.5,)): pass", "is not an array of integers"),
    ("async def bad(q: Read): pass", "is not a plain function"),
]


@pytest.mark.parametrize(("text", "message"), SIGNATURES)
def test_rejected_signatures(load: Loader, text: str, message: str):
    with pytest.raises(KernelError) as caught:
        load("@kernel\n" + text)
    assert message in caught.value.message
    assert caught.value.line == HEADER.count("\n") + (1 if "async" in text else 2)


HELPERS = [
    ("def f(a, b=1):\n    return a", "has no default", 2),
    ("def f(a, *, b):\n    return a", "positional parameters only", 2),
    ("def f(*a):\n    return 1", "positional parameters only", 2),
    ("def f(a):\n    return f(a)", "calls itself", 3),
    ("def f(a):\n    for i in range(3):\n        return a", "return inside a loop", 4),
    ("def f(a):\n    return a\n    a = 2", "follows a return", 4),
    ("def f(a):\n    if a > 0:\n        return a", "returns nothing", 3),
    ("def f(a):\n    break_ = [i for i in range(3)]\n    return a", "a comprehension", 3),
]


@pytest.mark.parametrize(("text", "message", "line"), HELPERS)
def test_rejected_helpers(load: Loader, text: str, message: str, line: int):
    with pytest.raises(KernelError) as caught:
        load("@func\n" + text)
    assert message in caught.value.message
    assert caught.value.line == HEADER.count("\n") + line


def test_branches_of_a_helper_must_agree(load: Loader):
    text, _, _ = expected("a = mixed(nu)")
    with pytest.raises(KernelError, match="branches return different things") as caught:
        load(text).bad.lower(SHAPES)
    assert "in a call from" in caught.value.__notes__[0]


def test_lambda_is_no_kernel(load: Loader):
    with pytest.raises(KernelError, match="not a plain function"):
        load("k = kernel(lambda q: None)")


def test_no_source_in_an_interactive_session():
    text = HEADER + "source = 'def k(q: Read): pass'\nexec(source)\nkernel(k)\n"
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert "the source of 'k' is not available" in result.stderr
    assert "hint: define the kernel in a file" in result.stderr


def test_wrong_names_given_to_lower(load: Loader):
    bad = load(expected("pass")[0]).bad
    with pytest.raises(KernelError, match="no data parameter 'rr'; did you mean 'r'"):
        bad.lower(SHAPES | {"rr": SHAPES["r"]})
    with pytest.raises(KernelError, match="no shape is given for 'x'"):
        bad.lower({"q": SHAPES["q"]})
    with pytest.raises(KernelError, match="no constant 'fag'; did you mean 'flag'"):
        bad.lower(SHAPES, {"fag": True})
    with pytest.raises(KernelError, match="is not an integer"):
        bad.lower(SHAPES, {"k": 1.5})


def test_columns_count_characters_not_bytes(load: Loader):
    with pytest.raises(KernelError) as caught:
        load("@kernel\ndef bad(q: RW):\n    α = 1.0; q[0] = α; del α\n")
    assert caught.value.column == 4 + len("α = 1.0; q[0] = α; ")


def test_nested_kernels_keep_the_columns_of_the_file(load: Loader):
    text = "def outer():\n    nu = 2.0\n    @kernel\n    def bad(q: RW):\n        q[0] = nu\n        del nu_\nouter()\n"
    with pytest.raises(KernelError) as caught:
        load(text)
    assert caught.value.column == 8
    assert caught.value.line == HEADER.count("\n") + 6
