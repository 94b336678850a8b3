"""The documentation tells the truth: its code runs, its names exist, nothing public is left out."""

import ast
import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
import shlex
import sys
from pathlib import Path

import pytest

import viewmend
from viewmend.bench import methods

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "viewmend"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<kind>python|console)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
# A file of the library in backquotes, perhaps with something in it: `core/agfti/admm.py::solve`.
CODE_PLACE = re.compile(
    r"`((?:backend|baselines|bench|callbacks|core|data|impute|models|persistence)/[\w/]+\.py)"
    r"(?:::(\w+))?`"
)
# Parts of the library that the reference leaves out: users meet them through others.
INTERNAL = {
    "backend",
    "cli",
    "core",
    "demo",
    "extras",
    "html_repr",
    "memory",
    "models",
    "moved",
    "parameters",
    "preprocessing",
    "protocols",
    "storage",
    "text",
    "version",
}


def page_name(path):
    return str(path.relative_to(ROOT))


def blocks(path):
    return [(match["kind"], match["code"]) for match in FENCE.finditer(path.read_text())]


@pytest.fixture(scope="module")
def reference():
    """The module that makes the reference, which MkDocs loads by its path."""
    pytest.importorskip("mkdocs", reason="the site is made by MkDocs")
    pytest.importorskip("griffe", reason="the reference is made by mkdocstrings")
    return load_hook("reference")


def load_hook(name):
    path = ROOT / "scripts" / "site" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    # Data classes look their module up in this table.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def modules_with_examples():
    for module in pkgutil.walk_packages(viewmend.__path__, "viewmend."):
        path = Path(module.module_finder.path, module.name.rpartition(".")[2])
        file = path / "__init__.py" if module.ispkg else path.with_suffix(".py")
        if ">>>" in file.read_text():
            yield module.name


@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_examples_in_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    said, runner = [], doctest.DocTestRunner()
    for example in doctest.DocTestFinder().find(module, name):
        runner.run(example, out=said.append)
    assert runner.tries > 0
    assert runner.failures == 0, "".join(said)


@pytest.mark.parametrize("path", [path for path in PAGES if blocks(path)], ids=page_name)
def test_code_on_pages_runs(path, tmp_path, monkeypatch):
    """All blocks of a page, one after another in one folder, as a reader would."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr(methods, "CONTESTANTS", dict(methods.CONTESTANTS))
    variables = {"__name__": "page"}
    for kind, code in blocks(path):
        if kind == "python":
            exec(compile(code, page_name(path), "exec"), variables)
        else:
            check_session(code)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def check_session(text):
    """Run the commands of a terminal session; what it shows below them must be printed.

    Three dots stand for anything, within a line or instead of lines.
    """
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        printed = run_command(command)
        expected = re.escape(shown.strip()).replace(r"\.\.\.", ".*")
        assert re.search(expected, printed, flags=re.DOTALL), f"{command}\n{printed}"


def run_command(command):
    testing = pytest.importorskip("typer.testing", reason="the command line needs Typer")
    from viewmend.cli import app

    program, *arguments = shlex.split(command)
    assert program == "viewmend"
    result = testing.CliRunner().invoke(app, arguments, env={"COLUMNS": "100", "TERM": "dumb"})
    assert result.exit_code == 0, result.output
    return result.output


def test_a_session_that_shows_what_is_not_printed_is_found_out():
    with pytest.raises(AssertionError, match="AGF-TI"):
        check_session("$ viewmend methods\nno such method\n")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_to_files_lead_somewhere(name):
    """Of pages outside the site, whose links MkDocs does not check."""
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / name).read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_code_that_pages_point_at_exists(path):
    places = CODE_PLACE.findall(path.read_text())
    absent = [(file, name) for file, name in places if not defines(SOURCE / file, name)]
    assert absent == []


def defines(file, name):
    return file.is_file() and (not name or name in names_in(ast.parse(file.read_text())))


def names_in(tree):
    defined = {node.name for node in ast.walk(tree) if hasattr(node, "name")}
    return defined | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def test_every_part_of_the_library_is_in_the_reference_or_internal(reference):
    parts = {module.name for module in pkgutil.iter_modules(viewmend.__path__)}
    shown = {
        name.split(".")[1] for pages in reference.PAGES.values() for name in pages if "." in name
    }
    assert parts - shown == INTERNAL - shown


def test_the_reference_shows_every_public_name(reference):
    for page, modules in reference.PAGES.items():
        text = reference.page_text(page)
        for name in modules:
            module = importlib.import_module(name)
            public = reference.ONLY.get(name, getattr(module, "__all__", ()))
            for thing in set(public) - {"__version__"}:
                assert f"::: {name}.{thing}\n" in text


def shown_things(reference):
    """Everything that the reference shows: module, name and the thing itself."""
    for name in (name for modules in reference.PAGES.values() for name in modules):
        module = importlib.import_module(name)
        for public in reference.public_names(module):
            yield name, public, getattr(module, public)


def test_nothing_in_the_reference_is_without_a_word(reference):
    import griffe

    rewriting = griffe.Extensions(reference.MarkdownDocstrings())
    package = griffe.load("viewmend", search_paths=[str(SOURCE.parent)], extensions=rewriting)
    for module, name, _ in shown_things(reference):
        entry = package[f"{module}.{name}".removeprefix("viewmend.")]
        assert (entry.final_target if entry.is_alias else entry).docstring, name


def test_public_docstrings_name_every_parameter(reference):
    silent = {
        name: missing
        for _, name, thing in shown_things(reference)
        if (inspect.isclass(thing) or inspect.isfunction(thing))
        and (missing := set(parameters(thing)) - documented(thing))
    }
    assert silent == {}


def parameters(thing):
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return []
    return inspect.signature(thing).parameters


def documented(thing):
    """Names before a colon, or alone in a line, in the sections on parameters and attributes."""
    text = inspect.getdoc(thing)
    sections = re.findall(
        r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)",
        text,
        re.DOTALL | re.MULTILINE,
    )
    heads = re.findall(r"^(\*{0,2}\w[\w, *]*?)(?: :|$)", "\n".join(sections), re.MULTILINE)
    return {name.strip("* ") for head in heads for name in head.split(",")}


DOCSTRINGS = '''
class Mixin:
    """See `MendClassifier`, ``MendClassifier`` and `viewmend.plot.PALETTE`; not `Nothing`.

    As in::

        code

    ``on_fit_begin(fit)``
        With a `Fit`.
    """

    predict: Callable[..., Array]
    names: tuple[str, ...]
'''


def test_docstrings_become_markdown_with_links(reference):
    import griffe

    package = griffe.visit("package", Path("package.py"), DOCSTRINGS)
    reference.MarkdownDocstrings().on_package(pkg=package)
    text = package["Mixin"].docstring.value
    assert "[`MendClassifier`][viewmend.MendClassifier], ``MendClassifier`` and" in text
    assert "[`viewmend.plot.PALETTE`][viewmend.plot.PALETTE]; not `Nothing`." in text
    assert "As in:\n\n    code" in text
    assert "- ``on_fit_begin(fit)``: With a [`Fit`][viewmend.callbacks.Fit]." in text
    # What a mixin only declares would hide the method of its sister.
    assert set(package["Mixin"].members) == {"names"}


def test_excerpts_are_cut_from_the_source_and_unknown_names_refused():
    exceptions = pytest.importorskip("mkdocs.exceptions", reason="the site is made by MkDocs")
    excerpts = load_hook("excerpts")
    page = excerpts.on_page_markdown(
        "before\n<!-- code: core/common/simplex.py::project_simplex -->\nafter"
    )
    assert "    def project_simplex(B: Array) -> Array:" in page
    assert page.startswith("before\n")
    method = excerpts.excerpt("data/container.py", "MultiViewData.stacked")
    assert method.splitlines()[0] == "    def stacked(self) -> np.ndarray:"
    with pytest.raises(exceptions.PluginError, match=r"simplex\.py has no gone; correct"):
        excerpts.on_page_markdown("<!-- code: core/common/simplex.py::gone -->")
