"""Import and compiled functions where no folder can be written to, or the cache is damaged."""

import subprocess
import sys

import numpy as np
import pytest

from viewmend.backend import compiling

# What Numba meets in a read-only install without a home.
WITHOUT_FOLDER = """
import sys
from numba.core import caching
def refuse(self):
    raise PermissionError(self.get_cache_path())
caching._CacheLocator.ensure_cache_path = refuse
import viewmend
heavy = {"matplotlib", "torch", "dask", "typer"} & set(sys.modules)
print(viewmend.__version__, sorted(heavy))
"""


def add_halves(values):
    total = 0.0
    for value in values:
        total += value / 2
    return total


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A new compiled function with a cache of its own, and the folder of that cache."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    return lambda: compiling.jit()(add_halves)


def test_import_needs_no_folder_that_can_be_written_to():
    child = subprocess.run(
        [sys.executable, "-c", WITHOUT_FOLDER],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (child.returncode, child.stdout.strip()[-2:]) == (0, "[]"), child.stderr[-500:]


def test_without_a_folder_functions_are_compiled_anew(kernel, monkeypatch):
    def refuse(self):
        raise PermissionError(self.get_cache_path())

    monkeypatch.setattr("numba.core.caching._CacheLocator.ensure_cache_path", refuse)
    assert kernel()(np.arange(4.0)) == 3.0


def test_a_cache_that_is_full_keeps_nothing(kernel, monkeypatch):
    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile._save_index", full)
    assert kernel()(np.arange(4.0)) == 3.0


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_damaged_cache_is_made_anew(kernel, tmp_path, ending):
    assert kernel()(np.arange(4.0)) == 3.0
    (damaged,) = tmp_path.rglob(f"*.{ending}")
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[: len(whole) // 2])
    assert kernel()(np.arange(4.0)) == 3.0
    healed = kernel()
    assert healed(np.arange(4.0)) == 3.0
    assert sum(healed.stats.cache_hits.values()) == 1
