"""Pages fetch nothing from elsewhere: no fonts, scripts or pictures of other hosts.

Links that a reader may follow are no concern of this; what a browser would load by itself is an
error at the end of the build.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

# An element that a browser loads by itself, with the address of another host.
LOADED = re.compile(
    r'<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)="((?:https?:)?//[^"]+)'
)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", on_build_finished)
    return {"parallel_read_safe": True}


def on_build_finished(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        check_pages(Path(app.outdir))


def check_pages(folder: Path) -> None:
    """Raise an error that names the first page which loads something, and what."""
    for page in sorted(folder.rglob("*.html")):
        found = LOADED.search(page.read_text())
        if found:
            msg = (
                f"{page.relative_to(folder)} loads {found[1]}, but pages must work without a "
                f"network; keep a copy in docs/assets, or turn that feature of the theme off"
            )
            raise ExtensionError(msg)
