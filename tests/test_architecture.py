"""The size and shape of the code base."""

import ast
import importlib
import inspect
import pkgutil
from dataclasses import fields
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
    for public in getattr(module, "__all__", ()):
        thing = getattr(module, public)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__doc__ or name == "viewmend.backend.dispatch", public


def test_notation_table_names_the_symbols_of_the_core():
    """docs/notation.md lists every field of the core's data classes that is a symbol."""
    notation = (Path(__file__).parents[1] / "docs" / "notation.md").read_text()
    from viewmend.core import Problem, State

    symbols = {field.name for kind in (Problem, State) for field in fields(kind)}
    absent = [name for name in sorted(symbols) if f"`{name}`" not in notation]
    assert absent == []
