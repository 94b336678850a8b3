"""The API reference: one page per public module, made from its ``__all__`` at build time.

Docstrings are written for Python's ``help``; `MarkdownDocstrings` makes Markdown of them, in which
the names of public things are links.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from types import ModuleType
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

# Page, and the modules whose public names it shows.
PAGES: Mapping[str, tuple[str, ...]] = {
    "viewmend": ("viewmend",),
    "baselines": (
        "viewmend.baselines",
        "viewmend.baselines.base",
        "viewmend.baselines.registry",
    ),
    "impute": ("viewmend.impute",),
    "datasets": ("viewmend.datasets",),
    "data": ("viewmend.data",),
    "model_selection": ("viewmend.model_selection",),
    "comparison": ("viewmend.comparison",),
    "models": (
        "viewmend.models.calibrated",
        "viewmend.models.explanation",
        "viewmend.models.suggestions",
        "viewmend.models.suspects",
        "viewmend.models.view_explanation",
        "viewmend.core.common.calibration",
    ),
    "callbacks": ("viewmend.callbacks",),
    "plot": ("viewmend.plot",),
    "report": ("viewmend.report",),
    "inspection": ("viewmend.inspection",),
    "persistence": ("viewmend.persistence",),
    "distributed": ("viewmend.distributed",),
    "bench": (
        "viewmend.bench.methods",
        "viewmend.datasets.catalogue",
        "viewmend.bench.protocols",
        "viewmend.bench.experiment",
        "viewmend.bench.store",
    ),
    "exceptions": ("viewmend.exceptions",),
}

# Of modules that a page shows in part, because the rest is for the library itself.
ONLY: Mapping[str, tuple[str, ...]] = {
    "viewmend.baselines.base": ("BaselineClassifier", "CompleteViewClassifier"),
    "viewmend.models.calibrated": ("Decision",),
    "viewmend.models.explanation": ("Explanation",),
    "viewmend.models.suggestions": ("LabelSuggestions", "ViewSuggestions", "ViewWorth"),
    "viewmend.models.suspects": ("SuspectLabels",),
    "viewmend.models.view_explanation": ("ViewExplanation",),
    "viewmend.core.common.calibration": ("Calibration",),
}

# What is said about a module has no place of its own in the table of contents.
UNLISTED = {"show_root_toc_entry": "false", "show_source": "false"}
# A paragraph that ends in "::" introduces a block of code; Markdown wants ":".
LITERAL_BLOCK = re.compile(r"::$", flags=re.MULTILINE)
# A line of code with indented text below it is an item of a list.
DEFINITION = re.compile(r"^(``[^`]+``)\n +", flags=re.MULTILINE)
# A name in single backquotes is one of the library's.
NAME = re.compile(r"(?<!`)`(?:viewmend\.)?(?P<name>[A-Za-z_][\w.]*)`(?!`)")


def on_config(config: MkDocsConfig) -> None:
    section = next(item["Reference"] for item in config.nav if "Reference" in item)
    section += [{_title(page): _uri(page)} for page in PAGES]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for page in PAGES:
        files.append(File.generated(config, _uri(page), content=page_text(page)))
    return files


def page_text(page: str) -> str:
    """A page in Markdown: for every module its purpose, an index, and every name in full."""
    title = _title(page)
    return "\n".join([f"# {title}\n", *(_module_text(name, title) for name in PAGES[page])])


def public_names(module: ModuleType) -> list[str]:
    """Names of a module that the reference shows, constants last."""
    names = ONLY.get(module.__name__) or getattr(module, "__all__", None) or _own_classes(module)
    shown = [name for name in names if not name.startswith("__")]
    return sorted(shown, key=lambda name: (name.isupper(), name.lower()))


class MarkdownDocstrings(griffe.Extension):
    """Rewrites docstrings where Markdown would show them otherwise than they are meant."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        places = _places()
        for obj in list(_objects(pkg)):
            if _is_declared_only(obj):
                obj.parent.del_member(obj.name)
            if obj.is_attribute and obj.name.isupper():
                obj.docstring = _comment_above(obj)
            if obj.docstring is not None:
                text = LITERAL_BLOCK.sub(":", obj.docstring.value)
                text = DEFINITION.sub(r"- \1: ", text)
                obj.docstring.value = NAME.sub(lambda match: _linked(match, places), text)


def _title(page: str) -> str:
    return "viewmend" if page == "viewmend" else f"viewmend.{page}"


def _uri(page: str) -> str:
    return f"reference/{page}.md"


def _own_classes(module: ModuleType) -> list[str]:
    members = inspect.getmembers(module, inspect.isclass)
    return [name for name, cls in members if cls.__module__ == module.__name__]


def _module_text(module_name: str, title: str) -> str:
    module = importlib.import_module(module_name)
    level = 2 if module_name == title else 3
    names = public_names(module)
    rows = [f"| [`{name}`][{module_name}.{name}] | {_summary(module, name)} |" for name in names]
    entries = [_entry(f"{module_name}.{name}", heading_level=level) for name in names]
    heading = [] if module_name == title else [f"## {module_name}\n"]
    # Its members are entries of their own.
    about = _entry(module_name, members="false", show_root_heading="false", **UNLISTED)
    index = ["| name | what it is |", "|---|---|", *rows, ""]
    return "\n".join([*heading, about, *index, *entries])


def _entry(name: str, **options: object) -> str:
    """What mkdocstrings replaces by the documentation of ``name``."""
    lines = [f"      {option}: {value}" for option, value in options.items()]
    return "\n".join([f"::: {name}", "    options:", *lines, ""])


def _summary(module: ModuleType, name: str) -> str:
    thing = getattr(module, name)
    described = inspect.isclass(thing) or inspect.isroutine(thing)
    return _first_paragraph(thing).replace("|", "\\|") if described else "constant"


def _first_paragraph(thing: Any) -> str:
    return inspect.getdoc(thing).split("\n\n")[0].replace("\n", " ")


def _places() -> dict[str, str]:
    """Where the reference shows a public thing, by its name alone and with its module."""
    places: dict[str, str] = {}
    for module_name in (name for modules in PAGES.values() for name in modules):
        for name in public_names(importlib.import_module(module_name)):
            place = f"{module_name}.{name}"
            places.setdefault(name, place)
            places.setdefault(place.removeprefix("viewmend."), place)
    return places


def _objects(obj: griffe.Object) -> Iterator[griffe.Object]:
    yield obj
    for member in obj.members.values():
        if not member.is_alias:
            yield from _objects(member)


def _is_declared_only(obj: griffe.Object) -> bool:
    """Whether a mixin only says that its sister has this method, which it would hide."""
    return obj.is_attribute and obj.value is None and str(obj.annotation).startswith("Callable")


def _comment_above(constant: griffe.Object) -> griffe.Docstring | None:
    """What stands in comments before a constant, which can have no docstring."""
    before = constant.module.filepath.read_text().splitlines()[: constant.lineno - 1]
    comment = list(takewhile(lambda line: line.startswith("# "), reversed(before)))
    text = " ".join(line.removeprefix("# ") for line in reversed(comment))
    return griffe.Docstring(text, parent=constant) if text else None


def _linked(match: re.Match[str], places: Mapping[str, str]) -> str:
    place = places.get(match["name"])
    return match[0] if place is None else f"[{match[0]}][{place}]"
