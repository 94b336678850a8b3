"""The site: ``make docs``, or ``sphinx-build -W docs build/site``.

Why Sphinx with the theme of PyData. Material for MkDocs ends in May 2027, and MkDocs 1 has had no
release for years. Its successor Zensical (0.0.74 when we looked, November 2026) reads our old
configuration, but runs no Python hooks: gallery and reference were absent, and 55 links led
nowhere. NumPy, SciPy, pandas and scikit-learn are documented with Sphinx, which has hooks at every
step, reads our Markdown (MyST), makes a warning an error, and builds pages whose search works from
the disk.

Pages are plain Markdown under ``docs``; what GitHub shows is what the site shows. Three modules in
``scripts/site`` add to that: code of the library inside pages, the gallery, and the reference. The
last two write the folders ``docs/gallery`` and ``docs/reference``, which git ignores. A fourth one
sees to it that pages load nothing from elsewhere.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts" / "site"))

from viewmend.version import __version__ as release  # noqa: E402

project = "viewmend"
author = "The viewmend developers"
project_copyright = "the viewmend developers"
version = release

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    # Ours.
    "excerpts",
    "gallery",
    "offline",
    "reference",
]
exclude_patterns = ["results/paper/*.html"]
source_suffix = {".md": "markdown"}

# Links of the kind `page.md#a-heading` lead to headings of up to four levels.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]

# Types stand in the sections on parameters; signatures stay short.
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
autodoc_member_order = "alphabetical"
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False
autosummary_generate = False
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
add_module_names = False
viewcode_line_numbers = True

html_theme = "pydata_sphinx_theme"
html_title = "viewmend"
html_static_path = ["assets"]
html_css_files = ["site.css"]
html_search_scorer = str(ROOT / "docs" / "assets" / "scorer.js")
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "viewmend"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_persistent": [],
    "navbar_end": ["search-button", "theme-switcher"],
    "navigation_depth": 2,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "show_prev_next": True,
    "search_as_you_type": True,
    "search_bar_text": "Search the guide and the reference",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# The first page has no sections beside it.
html_sidebars = {"index": []}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp"
