"""Print the lowest versions that pyproject.toml allows, as requirements: ``floors.py EXTRA ...``.

One line per dependency of the library and of the named extras, pinned to its floor. Nothing but
the standard library is needed, for this runs before anything is installed.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def floors(project: dict, extras: list[str]) -> Iterator[str]:
    """Requirements such as ``numpy==2.0.1``, for ``numpy>=2.0.1`` or ``numpy>=2.0.1,<3``."""
    wanted = [project["dependencies"], *(project["optional-dependencies"][e] for e in extras)]
    lines = (line for group in wanted for line in group)
    # An extra that takes in others names them so; they are to be named here one by one.
    for requirement in (line for line in lines if not line.startswith("viewmend[")):
        found = re.fullmatch(r"([\w.-]+(?:\[[\w,-]+\])?)>=([\d.]+)(?:,.*)?", requirement)
        if found is None:
            sys.exit(f"every dependency must have a floor, as in numpy>=2.0.1, got {requirement!r}")
        yield f"{found[1]}=={found[2]}"


if __name__ == "__main__":
    print(*floors(tomllib.loads(PROJECT.read_text())["project"], sys.argv[1:]), sep="\n")
