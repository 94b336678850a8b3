"""What cannot be looked up does not enter the documentation."""

from dataclasses import replace

import pytest

from viewmend.bench.environment import check_publishable
from viewmend.bench.report import ReportContents, write_report
from viewmend.bench.runs import Record, RunKey
from viewmend.bench.store import export_records
from viewmend.exceptions import InvalidParameterError

CLEAN, DIRTY, UNKNOWN = ({"revision": r} for r in ("v1-3-gabc", "v1-3-gabc-dirty", "unknown"))
KEY = RunKey("fit", "honest", "CUB", 0.5, 0.05, "Mend", (), 0)


@pytest.fixture
def checkout(tmp_path):
    """A folder whose ``docs`` are made into pages."""
    (tmp_path / "docs" / "results").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "docs" / "conf.py").touch()
    return tmp_path


@pytest.mark.parametrize("environment", [DIRTY, UNKNOWN, {}])
@pytest.mark.parametrize("path", ["docs", "docs/page.md", "docs/results/page.md"])
def test_the_documentation_refuses_what_cannot_be_looked_up(checkout, environment, path):
    with pytest.raises(InvalidParameterError, match=r"^1 of 3 records .* commit the code and do"):
        check_publishable([CLEAN, environment, CLEAN], checkout / path)


def test_a_relative_path_is_looked_at_where_it_leads(checkout, monkeypatch):
    monkeypatch.chdir(checkout / "elsewhere")
    with pytest.raises(InvalidParameterError, match="1 of v1-3-gabc-dirty"):
        check_publishable([DIRTY], "../docs/page.md")


def test_committed_code_and_other_folders_are_fine(checkout):
    check_publishable([CLEAN, CLEAN], checkout / "docs" / "page.md")
    check_publishable([DIRTY, UNKNOWN, {}], checkout / "elsewhere" / "page.md")
    # A folder of that name that no pages are made of.
    (checkout / "elsewhere" / "docs").mkdir()
    check_publishable([DIRTY], checkout / "elsewhere" / "docs" / "page.md")


@pytest.mark.parametrize(
    "write",
    [
        lambda records, docs: export_records(records, docs / "runs.csv"),
        lambda records, docs: write_report(docs / "page.html", records, ReportContents("A page")),
    ],
)
def test_exports_and_reports_ask_first(checkout, write):
    scores = dict.fromkeys(("accuracy", "macro_precision", "macro_recall", "macro_f1"), 0.5)
    clean = Record(KEY, "done", scores, environment=CLEAN)
    # One that was left out was not made by any code.
    left_out = Record(replace(KEY, data="UCI-Digit"), "left_out", message="too slow")
    with pytest.raises(InvalidParameterError, match="1 of 2 records"):
        write([clean, replace(clean, environment=DIRTY), left_out], checkout / "docs")
    assert [path.name for path in (checkout / "docs").iterdir() if path.is_file()] == ["conf.py"]
    write([clean, left_out], checkout / "docs")
    assert any(path.is_file() for path in (checkout / "docs").iterdir())
