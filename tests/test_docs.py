"""The documentation tells the truth: its code runs, its names exist, nothing public is left out."""

import ast
import doctest
import importlib
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
# Folders that are made when the site is built.
MADE = {ROOT / "docs" / "gallery", ROOT / "docs" / "reference"}
PAGES = [
    ROOT / "README.md",
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent not in MADE),
]
FENCE = re.compile(r"^```(?P<kind>python|console)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
# A file of the library in backquotes, perhaps with something in it: `core/agfti/admm.py::solve`.
CODE_PLACE = re.compile(
    r"`((?:backend|baselines|bench|callbacks|core|data|impute|models|persistence)/[\w/]+\.py)"
    r"(?:::(\w+))?`"
)
# Parts of the library that the reference leaves out: users meet them through others.
INTERNAL = {
    "__main__",
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
    """The module that makes the reference, an extension of Sphinx."""
    pytest.importorskip("sphinx", reason="the site is made by Sphinx")
    return load_extension("reference")


def load_extension(name):
    folder = ROOT / "scripts" / "site"
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


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
    """Of pages outside the site, whose links Sphinx does not check."""
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
    shown = {name.split(".")[1] for topic in reference.TOPICS.values() for name in topic.modules}
    assert parts - shown == INTERNAL - shown


def test_the_reference_shows_every_public_name_once(reference):
    text = "\n".join(map(reference.page_text, reference.TOPICS))
    shown = re.findall(r"^\.\. (?:auto\w+|py:data):: (\S+)$", text, re.MULTILINE)
    assert len(shown) == len(set(shown))
    assert set(shown) == set(reference.places().values())
    assert {f"viewmend.{name}" for name in viewmend.__all__} - {"viewmend.__version__"} <= set(
        shown
    )


def shown_things(reference):
    """Everything that the reference shows: module, name and the thing itself."""
    for name in (name for topic in reference.TOPICS.values() for name in topic.modules):
        module = importlib.import_module(name)
        for public in reference.public_names(module):
            yield module, public, getattr(module, public)


def test_nothing_in_the_reference_is_without_a_word(reference):
    silent = []
    for module, name, thing in shown_things(reference):
        members = reference.methods(thing) if inspect.isclass(thing) else []
        silent += [f"{name}.{one}" for one in members if not inspect.getdoc(getattr(thing, one))]
        silent += [] if reference.summary(module, name) else [name]
    assert silent == []


def test_public_docstrings_name_every_parameter(reference):
    silent = {
        name: missing
        for _, name, thing in shown_things(reference)
        if (inspect.isclass(thing) or inspect.isfunction(thing))
        and (missing := set(parameters(thing)) - documented(thing))
    }
    assert silent == {}


def test_every_parameter_and_attribute_has_a_description(reference):
    scrape = pytest.importorskip("numpydoc.docscrape", reason="the reference is made by numpydoc")
    silent = []
    for _, name, thing in shown_things(reference):
        if inspect.isclass(thing):
            docs = {name: scrape.ClassDoc(thing, config={"show_class_members": False})}
            members = {one: getattr(thing, one) for one in reference.methods(thing)}
        else:
            docs, members = {}, {name: thing}
        functions = {one: item for one, item in members.items() if inspect.isroutine(item)}
        docs |= {one: scrape.FunctionDoc(item) for one, item in functions.items()}
        silent += [
            f"{name}, {one}: {entry.name}"
            for one, doc in docs.items()
            for entry in doc["Parameters"] + (doc["Attributes"] if one == name else [])
            if not "".join(entry.desc).strip()
        ]
    assert silent == []


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


DOCSTRING = """See `MendClassifier`, ``MendClassifier`` and `viewmend.plot.PALETTE`; not `Nothing`.

After `MendClassifier.decide`, classes_ has them::

    print(`MendClassifier`, classes_)

Attributes
----------
classes_ : array (n_classes_,)

>>> print(model.classes_)
"""


def test_names_in_docstrings_become_links(reference):
    text = reference.linked(DOCSTRING)
    assert text.startswith(
        "See :py:obj:`MendClassifier <viewmend.MendClassifier>`, ``MendClassifier`` and "
        ":py:obj:`plot.PALETTE <viewmend.plot.PALETTE>`; not ``Nothing``."
    )
    assert ":py:obj:`MendClassifier.decide <viewmend.MendClassifier.decide>`, ``classes_`` " in text
    # Code stays as it is, and names of attributes are for numpydoc.
    assert "    print(`MendClassifier`, classes_)" in text
    assert "classes_ : array (n_classes\\_,)" in text
    assert ">>> print(model.classes_)" in text


def test_excerpts_are_cut_from_the_source_and_unknown_names_refused():
    errors = pytest.importorskip("sphinx.errors", reason="the site is made by Sphinx")
    excerpts = load_extension("excerpts")
    page = excerpts.written_out(
        "before\n<!-- code: core/common/simplex.py::project_simplex -->\nafter"
    )
    assert "\ndef project_simplex(B: Array) -> Array:" in page
    assert page.startswith("before\n:::{dropdown} `project_simplex` in `core/common/simplex.py`\n")
    assert page.endswith("\n:::\n\nafter")
    method = excerpts.excerpt("data/container.py", "MultiViewData.stacked")
    assert method.splitlines()[0] == "    def stacked(self) -> np.ndarray:"
    with pytest.raises(errors.ExtensionError, match=r"simplex\.py has no gone; correct"):
        excerpts.written_out("<!-- code: core/common/simplex.py::gone -->")


def test_pages_that_load_something_from_elsewhere_are_refused(tmp_path):
    errors = pytest.importorskip("sphinx.errors", reason="the site is made by Sphinx")
    offline = load_extension("offline")
    page = tmp_path / "guide" / "page.html"
    page.parent.mkdir()
    page.write_text('<a href="https://example.org">a link</a><img alt="" src="own.png">')
    offline.check_pages(tmp_path)
    page.write_text('<link rel="stylesheet" href="https://fonts.example.org/a.css">')
    with pytest.raises(errors.ExtensionError, match=r"page\.html loads https://fonts\.example"):
        offline.check_pages(tmp_path)


def test_every_page_is_in_the_navigation_once():
    pages = {page_name(path).removesuffix(".md") for path in PAGES[1:]}
    listed = [entry for path in PAGES[1:] for entry in toctree_entries(path)]
    assert pages - set(listed) == {"docs/index"}, "add a line to the toctree of its section"
    assert len(listed) == len(set(listed))


def toctree_entries(path):
    """Pages that the lists of a page name, from the root of the source, without their suffix."""
    for block in re.findall(
        r"^```{toctree}\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL
    ):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                target = re.sub(r"^.*<(.*)>$", r"\1", line)
                yield str((path.parent / target).resolve().relative_to(ROOT))


def test_pages_link_names_of_the_reference():
    pytest.importorskip("sphinx", reason="the site is made by Sphinx")
    excerpts = load_extension("excerpts")
    assert excerpts.written_out("[`load`][viewmend.load]") == "[`load`](#viewmend.load)"


def test_the_first_page_tells_the_accuracies_of_the_record():
    """The means over all data sets and missing rates of docs/results/honest.csv."""
    pd = pytest.importorskip("pandas")
    runs = pd.read_csv(ROOT / "docs" / "results" / "honest.csv")
    methods = ["Mend", "Poisson-MBO", "union graph", "late fusion", "late trees"]
    runs = runs[(runs["protocol"] == "honest") & runs["method"].isin(methods)]
    means = runs.groupby("method")["accuracy"].mean()
    told = [means["Mend"], means.drop("Mend").max(), means["late fusion"]]
    home = (ROOT / "docs" / "index.md").read_text()
    assert re.findall(r"(\d\d\.\d) %", home) == [f"{100 * one:.1f}" for one in told]
