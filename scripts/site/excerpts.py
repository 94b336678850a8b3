"""What pages say in shorthand, written out when the site is built.

A line ``<!-- code: core/agfti/admm.py::solve -->`` becomes a folded box with that function or
class. A name that is not there is an error, so that no page can tell of code that has gone.
``[text][viewmend.load]`` becomes a link to that name in the reference.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

SOURCE = Path(__file__).parents[2] / "src" / "viewmend"
MARKER = re.compile(r"^<!-- code: (?P<path>[\w/]+\.py)::(?P<name>[\w.]+) -->$", re.MULTILINE)
NAMED = re.compile(r"\]\[(viewmend\.[\w.]+)\]")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", on_source_read)
    return {"parallel_read_safe": True}


def on_source_read(app: Sphinx, docname: str, content: list[str]) -> None:  # noqa: ARG001
    content[0] = written_out(content[0])


def written_out(markdown: str) -> str:
    """A page with its excerpts, and with its links to names."""
    return NAMED.sub(r"](#\1)", MARKER.sub(_box, markdown))


def excerpt(path: str, name: str) -> str:
    """Source of a function, class, method (``Class.method``) or constant of a module."""
    text = (SOURCE / path).read_text()
    node: ast.AST = ast.parse(text)
    for part in name.split("."):
        found = [child for child in ast.iter_child_nodes(node) if part in _names(child)]
        if not found:
            msg = f"{path} has no {name}; correct the comment that asks for its code"
            raise ExtensionError(msg)
        node = found[0]
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def _names(node: ast.AST) -> list[str]:
    """What a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _box(match: re.Match[str]) -> str:
    path, name = match["path"], match["name"]
    code = f"```python\n{excerpt(path, name)}\n```"
    return f":::{{dropdown}} `{name}` in `{path}`\n:class-container: code-box\n\n{code}\n:::\n"
