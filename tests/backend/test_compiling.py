"""The first compilation on a machine: short, and told once."""

import ast
import inspect

import numpy as np
import pytest

from viewmend.backend import (
    compiling,
    numba_cpu,
    numba_fourier,
    numba_networks,
    numba_products,
    numba_rounds,
)


def double(values):
    total = 0.0
    for value in values:
        total += 2 * value
    return total


def test_compiling_is_told_once_and_only_where_nothing_is_kept(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    compiling._tell_of_compiling.cache_clear()
    assert compiling.jit()(double)(np.arange(3.0)) == 6.0
    assert compiling.jit()(double)(np.arange(3, dtype=np.float32)) == 6.0
    assert [record.message.split(",")[0] for record in caplog.records] == [
        "viewmend compiles its kernels for this machine"
    ]
    # Another process, which finds something kept, compiles for other arrays without a word.
    compiling._tell_of_compiling.cache_clear()
    caplog.clear()
    assert compiling.jit()(double)(np.arange(3)) == 6.0
    assert not caplog.records


@pytest.mark.parametrize(
    "module",
    [numba_cpu, numba_fourier, numba_networks, numba_products, numba_rounds],
    ids=lambda module: module.__name__.rpartition(".")[2],
)
def test_kernels_assign_no_slices(module):
    """Numba compiles its functions of text with them, for the message about shapes: seconds."""
    functions = [n for n in ast.walk(ast.parse(inspect.getsource(module))) if is_kernel(n)]
    assert functions
    targets = [
        target
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
    ]
    slices = [n for target in targets for n in ast.walk(target) if isinstance(n, ast.Slice)]
    assert not slices


def is_kernel(node):
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(d, ast.Call) and getattr(d.func, "id", "") == "jit" for d in node.decorator_list
    )
