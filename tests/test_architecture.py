"""The size and shape of the code base."""

import ast
import importlib
import inspect
import pkgutil
from dataclasses import fields
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import viewmend

SOURCE = Path(viewmend.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
NAMES = [m.name for m in pkgutil.walk_packages(viewmend.__path__, "viewmend.")]


def code_lines(function):
    """Lines of a function without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return sum(node.end_lineno - node.lineno + 1 for node in body)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_modules_and_functions_stay_short(path):
    text = path.read_text()
    assert text.count("\n") <= 400, "is it one idea?"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name != "__init__":
            assert code_lines(node) <= 45, f"{node.name} has {code_lines(node)} lines"


@pytest.mark.parametrize("name", NAMES)
def test_public_names_exist_and_have_docstrings(name):
    if name.startswith("viewmend.backend.triton"):
        pytest.importorskip("triton", reason="for NVIDIA GPUs")
    module = importlib.import_module(name)
    assert module.__doc__
    own = [n for n, thing in vars(module).items() if getattr(thing, "__module__", None) == name]
    for public in {*getattr(module, "__all__", ()), *own}:
        thing = getattr(module, public)
        if not public.startswith("_") and (inspect.isclass(thing) or inspect.isfunction(thing)):
            assert thing.__doc__, public


def test_notation_table_names_the_symbols_of_the_core():
    """docs/notation.md lists every field of the core's data classes that is a symbol."""
    notation = (Path(__file__).parents[1] / "docs" / "notation.md").read_text()
    from viewmend.core import Problem, State

    symbols = {field.name for kind in (Problem, State) for field in fields(kind)}
    absent = [name for name in sorted(symbols) if f"`{name}`" not in notation]
    assert absent == []


def module_name(path):
    parts = ("viewmend", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PARSED = {module_name(path): ast.parse(path.read_text()) for path in MODULES}


def imported_modules(tree):
    """Modules of the package that a module imports anywhere, also within functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            within = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in PARSED else node.module for name in within)


def test_no_module_imports_itself_over_others():
    graph = {name: {*imported_modules(tree)} & PARSED.keys() for name, tree in PARSED.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a cycle of imports: {' <- '.join(error.args[1])}")


# Private names of other libraries, which have no public ones for it.
BORROWED = {
    "_callback_fit_ctx": "where scikit-learn's callbacks keep the task of the running fit",
}


def defined_names(tree):
    """Names of functions, classes, fields and attributes that a module defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def is_own(owner):
    """Whether it is ``self``, ``cls`` or ``super()``."""
    name = owner.func if isinstance(owner, ast.Call) else owner
    return isinstance(name, ast.Name) and name.id in {"self", "cls", "super"}


def private_reaches(tree):
    """Private attributes, of others than ``self``, that a module uses and does not define."""
    allowed = {*defined_names(tree), *BORROWED}
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not is_own(node.value)
        and node.attr not in allowed
    ]


@pytest.mark.parametrize("name", PARSED)
def test_no_module_reaches_into_the_private_parts_of_others(name):
    assert private_reaches(PARSED[name]) == []


def test_a_reach_into_private_parts_is_noticed():
    own = "class A:\n  def _f(self, other):\n    self._g()\n    super()._g()\n    other._f()"
    assert private_reaches(ast.parse(own)) == []
    assert private_reaches(ast.parse("def f(model):\n    model.best._fit()")) == [
        "line 2: model.best._fit"
    ]
