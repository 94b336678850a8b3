"""Public functions, classes and methods of the benchmark say what they are for."""

import importlib
import inspect
import pkgutil

import pytest

import viewmend.bench

MODULES = [m.name for m in pkgutil.walk_packages(viewmend.bench.__path__, "viewmend.bench.")]


def documented(thing):
    return inspect.isclass(thing) or inspect.isfunction(thing) or isinstance(thing, property)


@pytest.mark.parametrize("name", MODULES)
def test_public_things_have_docstrings(name):
    module = importlib.import_module(name)
    things = {
        path: thing
        for path, thing in vars(module).items()
        if documented(thing) and getattr(thing, "__module__", "") == name
    }
    for path, owner in [item for item in things.items() if inspect.isclass(item[1])]:
        things |= {
            f"{path}.{part}": thing for part, thing in vars(owner).items() if documented(thing)
        }
    public = {path: thing for path, thing in things.items() if "._" not in f".{path}"}
    # A data class without docstring gets its signature for one.
    assert [
        path
        for path, thing in public.items()
        if not thing.__doc__ or thing.__doc__.startswith(f"{path}(")
    ] == []
