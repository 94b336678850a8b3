"""Python files that an experiment brings along."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from viewmend.bench.fields import InvalidExperimentError


def load_plugins(paths: Iterable[str]) -> None:
    """Import Python files under the name of the file, each once per process.

    This runs what stands in them: only for files that somebody trusts.

    Parameters
    ----------
    paths : iterable of str
        Python files.
    """
    for path in paths:
        name = Path(path).stem
        known = getattr(sys.modules.get(name), "__file__", None)
        if known == path:
            continue
        spec = importlib.util.spec_from_file_location(name, path)
        if name in sys.modules or spec is None or spec.loader is None or not Path(path).is_file():
            msg = (
                f"plugin {path!r} must be a Python file whose name no other module has; "
                "rename it or correct the path"
            )
            raise InvalidExperimentError(msg)
        module = importlib.util.module_from_spec(spec)
        # Before it runs: what it registers may be imported by this name.
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
