"""The reference: a page per topic, made from ``__all__`` and the docstrings when the site is built.

Everything public stands on one page, under the shortest name it can be imported by. In docstrings,
a public name in single backquotes is a link to it.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import Any

from generated import write_folder
from sphinx.application import Sphinx


@dataclass(frozen=True)
class Topic:
    """A page: its title, a sentence, and the modules whose public names it shows."""

    title: str
    sentence: str
    modules: tuple[str, ...]


TOPICS: Mapping[str, Topic] = {
    "mend": Topic(
        "MendClassifier",
        "The classifier to use, and what its methods return.",
        (
            "viewmend.models.mend",
            "viewmend.models.calibrated",
            "viewmend.models.explanation",
            "viewmend.models.suggestions",
            "viewmend.models.suspects",
            "viewmend.models.view_explanation",
            "viewmend.core.common.accuracy",
            "viewmend.core.common.calibration",
        ),
    ),
    "data": Topic(
        "Data",
        "From tables, files, AnnData and MuData to views, and results back to them.",
        ("viewmend.data", "viewmend.preprocessing"),
    ),
    "inspection": Topic(
        "Inspection", "What may spoil a fit, found before it.", ("viewmend.inspection",)
    ),
    "comparison": Topic(
        "Comparing and tuning",
        "Methods and parameters compared by the labels you have.",
        ("viewmend.comparison", "viewmend.models.search", "viewmend.model_selection"),
    ),
    "plot": Topic(
        "Plots and reports",
        "Pictures of data and models, and one page about a fitted model.",
        ("viewmend.plot", "viewmend.report"),
    ),
    "callbacks": Topic(
        "Long fits", "Progress, time limits and checkpoints.", ("viewmend.callbacks",)
    ),
    "persistence": Topic(
        "Saving and loading", "Models in files, without pickle.", ("viewmend.persistence",)
    ),
    "agfti": Topic("AGFTIClassifier", "The method of the paper.", ("viewmend.models.agfti",)),
    "baselines": Topic(
        "Other methods",
        "What the paper compares with, and simpler methods, under one interface.",
        ("viewmend.baselines", "viewmend.baselines.base", "viewmend.baselines.registry"),
    ),
    "impute": Topic("Imputers", "Missing rows filled in.", ("viewmend.impute",)),
    "datasets": Topic(
        "Data sets",
        "Embedded and generated data, and what hides views and labels of it.",
        ("viewmend.datasets",),
    ),
    "distributed": Topic(
        "Dask", "Fits on data that does not fit into memory.", ("viewmend.distributed",)
    ),
    "bench": Topic(
        "Benchmarks",
        "Experiments that can be stopped and resumed.",
        (
            "viewmend.bench.methods",
            "viewmend.datasets.catalogue",
            "viewmend.bench.protocols",
            "viewmend.bench.experiment",
            "viewmend.bench.store",
        ),
    ),
    "exceptions": Topic(
        "Errors and warnings", "What is raised, and when.", ("viewmend.exceptions",)
    ),
}

# Of modules that a page shows in part, because the rest is for the library itself.
ONLY: Mapping[str, tuple[str, ...]] = {
    "viewmend.baselines.base": ("BaselineClassifier", "CompleteViewClassifier"),
    "viewmend.models.agfti": ("AGFTIClassifier",),
    "viewmend.models.calibrated": ("Decision",),
    "viewmend.models.explanation": ("Explanation",),
    "viewmend.models.mend": ("MendClassifier",),
    "viewmend.models.search": ("LabelSearchCV",),
    "viewmend.models.suggestions": ("LabelSuggestions", "ViewSuggestions", "ViewWorth"),
    "viewmend.models.suspects": ("SuspectLabels",),
    "viewmend.models.view_explanation": ("ViewExplanation",),
    "viewmend.core.common.accuracy": ("AccuracyEstimate",),
    "viewmend.core.common.calibration": ("Calibration",),
    "viewmend.preprocessing": ("PerView",),
}

# Methods of estimators that other parts of the library call, and users do not.
NOT_FOR_USERS = frozenset(
    {
        "build_geometry",
        "callbacks",
        "check_callbacks_in_memory",
        "check_groups",
        "fit_prepared",
        "keeps_labels",
        "prepare",
        "samples_to_fit",
        "tell_stage",
        "validate_parameters",
    }
)
# A class with more methods than this begins with a list of them, by what they are for.
MANY_METHODS = 8
PURPOSES: Mapping[str, tuple[str, ...]] = {
    "Fit and predict": ("fit", "fit_predict", "predict", "predict_proba", "score"),
    "Trust": (
        *("estimated_accuracy_", "decide", "predict_set"),
        *("explain", "explain_new", "explain_view"),
    ),
    "Doubt": ("suspect_labels", "unknown_score"),
    "Next steps": ("suggest_labels", "suggest_first_labels", "suggest_views"),
    "Reports and files": ("report", "for_prediction"),
}
# The heading of a section of a docstring.
SECTION = re.compile(r"^(\w+)\n-+$", flags=re.MULTILINE)
# A name in single backquotes is one of the library's.
NAME = re.compile(r"(?<![`:])`(?:viewmend\.)?(?P<name>[A-Za-z_][\w.]*)`(?!`)")
# A fitted attribute outside of backquotes, which reStructuredText would take for a link.
FITTED = re.compile(r"(?<![\w`.*])([A-Za-z]\w*_)(?![\w`])")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", on_builder_inited)
    app.connect("autodoc-process-docstring", on_docstring, priority=100)
    app.connect("autodoc-skip-member", on_member)
    return {"parallel_read_safe": True}


def on_builder_inited(app: Sphinx) -> None:
    contents = {f"{page}.md": page_text(page) for page in TOPICS}
    write_folder(Path(app.srcdir) / "reference", {"index.md": index_text(), **contents})


def on_docstring(*event: Any) -> None:
    lines = event[-1]
    lines[:] = linked("\n".join(lines)).splitlines()


def on_member(_: Sphinx, __: str, name: str, member: Any, *___: Any) -> bool | None:
    """Leave out what other libraries define, such as ``get_params``, and what is not for users."""
    foreign = inspect.isroutine(member) and not _home(member).startswith("viewmend")
    return True if foreign or name in NOT_FOR_USERS else None


def index_text() -> str:
    rows = [f"| [{topic.title}]({page}.md) | {topic.sentence} |" for page, topic in TOPICS.items()]
    pages = "\n".join(TOPICS)
    return (
        "# Reference\n\nEvery public name, by topic.\n\n"
        "| topic | |\n|---|---|\n" + "\n".join(rows) + "\n\n"
        f"```{{toctree}}\n:hidden:\n\n{pages}\n```\n"
    )


def page_text(page: str) -> str:
    """A page in Markdown: for every module an index, and every name in full."""
    topic = TOPICS[page]
    parts = [f"# {topic.title}\n", f"{topic.sentence}\n"]
    for module_name in topic.modules:
        parts += _module_text(page, module_name)
    return "\n".join(parts)


def public_names(module: ModuleType) -> list[str]:
    """Names of a module that the reference shows, constants last."""
    names = ONLY.get(module.__name__) or getattr(module, "__all__", None) or _own_classes(module)
    shown = [name for name in names if not name.startswith("__")]
    return sorted(shown, key=lambda name: (name.isupper(), name.lower()))


@cache
def places() -> dict[str, str]:
    """The one place of every public thing, by all names under which it is public."""
    root = importlib.import_module("viewmend")
    by_identity = {id(getattr(root, name)): f"viewmend.{name}" for name in public_names(root)}
    found = {name: f"viewmend.{name}" for name in public_names(root)}
    for module_name in (name for topic in TOPICS.values() for name in topic.modules):
        module = importlib.import_module(module_name)
        for name in public_names(module):
            thing, full = getattr(module, name), f"{module_name}.{name}"
            described = inspect.isclass(thing) or inspect.isroutine(thing)
            place = by_identity.setdefault(id(thing), full) if described else full
            found.setdefault(name, place)
            found.setdefault(full.removeprefix("viewmend."), place)
    return found


def place(name: str) -> str | None:
    """Where the reference shows a name, or a method of it; None for others."""
    known = places()
    if name in known:
        return known[name]
    owner, _, member = name.rpartition(".")
    return f"{known[owner]}.{member}" if owner in known else None


def linked(docstring: str) -> str:
    """A docstring in which public names are links; code in it stays as it is."""
    lines, session, literal = [], False, None
    for line in docstring.split("\n"):
        indent = len(line) - len(line.lstrip())
        session = line.lstrip().startswith(">>>") or (session and bool(line.strip()))
        if literal is not None and line.strip() and indent <= literal:
            literal = None
        lines.append(line if session or literal is not None else _linked_line(line))
        if line.endswith("::"):
            literal = indent
    return "\n".join(lines)


def methods(cls: type) -> list[str]:
    """Public methods and properties of a class that this library defines.

    Not those that only a loop calls: the hooks of callbacks, which `viewmend.callbacks` explains.
    """
    return sorted(
        name
        for name, member in inspect.getmembers(cls)
        if not name.startswith("_")
        and (inspect.isroutine(member) or isinstance(member, property))
        and not name.startswith("on_")
        and name not in NOT_FOR_USERS
        and _home(member).startswith("viewmend")
    )


def summary(module: ModuleType, name: str) -> str:
    """What a public name is, in a sentence; the comment above it, of a constant."""
    thing = getattr(module, name)
    described = inspect.isclass(thing) or inspect.isroutine(thing)
    return _first_sentence(thing) if described else _markdown(_comment_above(module, name))


def _home(member: Any) -> str:
    return getattr(inspect.unwrap(getattr(member, "fget", member)), "__module__", None) or ""


def _linked_line(line: str) -> str:
    head, colon, kind = line.partition(" : ")
    if colon and not line.startswith(" "):
        # A parameter or attribute, of which numpydoc takes the name.
        return head + colon + FITTED.sub(lambda match: match[1][:-1] + "\\_", kind)
    parts = re.split(r"(`+[^`]+`+)", NAME.sub(_role, line))
    return "".join(part if part.startswith("`") else FITTED.sub(r"``\1``", part) for part in parts)


def _role(match: re.Match[str]) -> str:
    target = place(match["name"])
    return f"``{match['name']}``" if target is None else f":py:obj:`{match['name']} <{target}>`"


def _own_classes(module: ModuleType) -> list[str]:
    members = inspect.getmembers(module, inspect.isclass)
    return [name for name, cls in members if cls.__module__ == module.__name__]


def _module_text(page: str, module_name: str) -> Iterator[str]:
    module = importlib.import_module(module_name)
    names = public_names(module)
    first = TOPICS[page].modules[0] == module_name
    if not first and module_name not in ONLY:
        yield f"## {module_name}\n"
    if module_name not in ONLY:
        yield _index({name: summary(module, name) for name in names}, module_name)
        yield _rst(SECTION.sub(r".. rubric:: \1\n", linked(inspect.getdoc(module))))
    here = [name for name in names if _shown_by(module_name, name) == page]
    for name in here:
        yield _entry(module, name)


def _shown_by(module_name: str, name: str) -> str:
    """The page that shows a name which several modules may share."""
    thing = getattr(importlib.import_module(module_name), name)
    for page, topic in TOPICS.items():
        for other in map(importlib.import_module, topic.modules):
            if any(getattr(other, one) is thing for one in public_names(other)):
                return page
    raise LookupError(name)


def _index(summaries: Mapping[str, str], prefix: str) -> str:
    rows = [
        f"| [`{name}`](#{place(f'{prefix}.{name}'.removeprefix('viewmend.'))}) | {summary} |"
        for name, summary in summaries.items()
    ]
    return "\n".join(["| name | what it is |", "|---|---|", *rows, ""])


def _entry(module: ModuleType, name: str) -> str:
    """What autodoc replaces by the documentation of a thing."""
    thing, full = getattr(module, name), place(f"{module.__name__}.{name}"[len("viewmend.") :])
    if inspect.isclass(thing):
        return _overview(thing, full) + _rst(
            f".. autoclass:: {full}", "   :members:", "   :inherited-members:"
        )
    if inspect.isroutine(thing):
        return _rst(f".. autofunction:: {full}")
    text = _comment_above(module, name)
    return _rst(f".. py:data:: {full}", "", f"   {linked(text)}")


def _overview(cls: type, full: str) -> str:
    """A table of the methods of a class, by purpose; nothing if there are few."""
    names = methods(cls)
    if len(names) <= MANY_METHODS:
        return ""
    parts = [f"**What `{cls.__name__}` can do**\n", "| | |", "|---|---|"]
    for purpose, group in by_purpose(names).items():
        parts.append(f"| **{purpose}** | |")
        for name in group:
            said = _first_sentence(getattr(cls, name))
            parts.append(f"| [`{name}`](#{full}.{name}) | {said} |")
    return "\n".join([*parts, "", ""])


def by_purpose(names: list[str]) -> dict[str, list[str]]:
    """Names of methods in the order of `PURPOSES`, others last."""
    named = {name for group in PURPOSES.values() for name in group}
    groups = {title: [name for name in group if name in names] for title, group in PURPOSES.items()}
    groups["More"] = [name for name in names if name not in named]
    return {title: group for title, group in groups.items() if group}


def _rst(*lines: str) -> str:
    return "\n".join(["```{eval-rst}", *lines, "```", ""])


def _first_sentence(thing: Any) -> str:
    """The first paragraph of a docstring as Markdown, for a cell of a table."""
    text = (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")
    return _markdown(text).replace("|", "\\|")


def _markdown(text: str) -> str:
    """A sentence of a docstring as Markdown with links to public names."""

    def link(match: re.Match[str]) -> str:
        target = place(match["name"])
        return f"`{match['name']}`" if target is None else f"[`{match['name']}`](#{target})"

    return NAME.sub(link, text).removesuffix(":").removesuffix(":")


def _comment_above(module: ModuleType, constant: str) -> str:
    """What stands in comments before a constant, which can have no docstring."""
    for owner in [module, *(m for m in _modules() if m.__name__.startswith(module.__name__))]:
        lines = Path(owner.__file__).read_text().splitlines()
        at = [i for i, line in enumerate(lines) if re.match(rf"{constant}\b.*=", line)]
        if at:
            comment = list(takewhile(lambda line: line.startswith("# "), reversed(lines[: at[0]])))
            return " ".join(line.removeprefix("# ") for line in reversed(comment))
    return ""


def _modules() -> list[ModuleType]:
    import sys

    return [module for name, module in sorted(sys.modules.items()) if name.startswith("viewmend.")]
