"""The report is one file that holds everything, and a browser makes it alive."""

import json
import os
import re
import shutil
import signal
from html.parser import HTMLParser
from itertools import count

import pytest

from viewmend.bench.paper_values import Look, PaperTables, PaperValue
from viewmend.bench.report import (
    ReportContents,
    best_methods,
    for_page,
    report_html,
    write_report,
)
from viewmend.bench.runs import Record, RunKey, setting_of
from viewmend.bench.tables.table import Entry, Line, Table, to_html

ENVIRONMENT = {"versions": {"numpy": "9.9"}, "machine": {"cores": 3}, "revision": "abc-dirty"}
# Digits is best for Able, Birds for Baker, and Baker is missing from Scenes.
SCORES = {
    ("Able", "Birds"): 60,
    ("Able", "Digits"): 95,
    ("Able", "Scenes"): 9,
    ("Baker", "Birds"): 85,
    ("Baker", "Digits"): 70,
}


def run(method, data, repetition, score, protocol="honest"):
    key = RunKey("fit", protocol, data, 0.3, 0.05, method, setting_of({}), repetition)
    metrics = ("accuracy", "macro_precision", "macro_recall", "macro_f1")
    sizes = {"n_samples": 50, "n_labelled": 5, "observed_pairs": 0.7, "complete_samples": 0.4}
    # Two series in the figure of times, so that it has keys.
    seconds = {"fit": 1.0, "imputation": 3.0 if method == "Baker" else 0.0}
    return Record(
        key, "done", {**dict.fromkeys(metrics, score / 100), **sizes}, seconds, ENVIRONMENT
    )


def unfinished(status, message):
    key = RunKey("fit", "honest", "Scenes", 0.3, 0.05, "Baker", (), 0)
    return Record(key, status, message=message)


@pytest.fixture(scope="module")
def records():
    done = [run(*key, i, score + i) for key, score in SCORES.items() for i in range(3)]
    odd = unfinished("error", "ValueError: <script>alert('no')</script> & more")
    return [*done, run("Able", "Birds", 0, 50, "paper"), odd, unfinished("left_out", "too dear")]


@pytest.fixture(scope="module")
def contents():
    printed = PaperTables({("Birds", 0.3, 0.05, "Able", "ACC"): PaperValue(61.5, "accuracy", 2.0)})
    return ReportContents("Small <experiment>", Look(subject="Able", paper=printed))


@pytest.fixture(scope="module")
def text(records, contents):
    return report_html(records, contents)


class Balance(HTMLParser):
    """Checks that what is opened is closed, and collects attributes that load something."""

    VOID = ("meta",)

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.ids, self.scripts = [], [], [], 0

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for key, value in attrs if key == "id"]
        links = [value for key, value in attrs if key in ("src", "href", "xlink:href")]
        self.loads += [link for link in links if not link.startswith("#")]
        self.loads += [tag] if tag in ("link", "iframe", "img", "object") else []
        self.scripts += tag == "script"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_well_formed_and_loads_nothing(text):
    parser = Balance()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    assert parser.loads == []
    assert parser.scripts == 1
    assert "@import" not in text
    assert "http" not in text
    assert len(parser.ids) == len(set(parser.ids))
    anchors = re.findall(r'href="#([^"]+)"', text)
    clips = re.findall(r"url\(([^)]*)\)", text)
    assert {*anchors, *(clip.removeprefix("#") for clip in clips)} <= set(parser.ids)


def test_page_tells_protocols_failures_and_where_it_ran(text):
    page = text
    assert "16 done, 1 failed, 1 left out" in page
    assert "Small &lt;experiment&gt;" in page
    assert "&lt;script&gt;alert(&#x27;no&#x27;)&lt;/script&gt; &amp; more" in page
    assert "<script>alert" not in page
    assert "too dear" in page
    for said in ("Protocol: honest", "Protocol: paper", "versions numpy", "9.9", "abc-dirty"):
        assert said in page
    assert "70.0%" in page.split("<caption>Realised completeness")[1].split("</table>")[0]


def test_metrics_that_mean_the_same_are_shown_once(text):
    honest, paper = text.split("<h2>Protocol: ")[1:]
    assert "scores, recall" in honest
    # Under the paper's protocol PREC is recall already.
    assert "scores, precision" in paper
    assert "scores, recall" not in paper
    assert "PREC is macro recall, not macro precision" in paper


def test_the_summary_names_the_best_method_and_the_next(records):
    """Of those that have all conditions: on Scenes there is no run of Baker."""
    runs = [one for one in records if one.key.protocol == "honest"]
    told = best_methods(runs, "ACC")
    # Means over the repetitions, whose scores are one apart: 61, 96 and 10.
    assert "Able has the highest mean accuracy, 55.7%, over 3 conditions on 3 data sets." in told
    both = [one for one in runs if one.key.data != "Scenes"]
    told = best_methods(both, "ACC")
    assert "Able has the highest mean accuracy, 78.5%, over 2 conditions on 2 data sets" in told
    assert told.endswith("; Baker follows with 78.5%.")


def test_words_are_explained_and_letters_of_the_paper_are_words(text):
    summary = text.split("<h2>Summary</h2>")[1].split("</section>")[0]
    for term in ("missing rate, VMR", "label rate, LAR", "condition, cell", "accuracy, ACC"):
        assert f"<dt>{term}</dt>" in summary
    table = text.split("<caption>Accuracy (%)")[1].split("</table>")[0]
    assert "missing rate" in table
    assert "VMR" not in table


def test_scores_have_one_decimal_and_p_values_keep_theirs():
    lines = (
        Line(("a",), (Entry("0.188", 0.188), Entry("86.66 ± 0.46", 86.66))),
        Line(("mean",), (Entry("-"), Entry("81.47", 81.47)), summary=True),
    )
    table = for_page(Table("t", ("VMR",), ("p", "all data sets"), lines))
    assert table.heads == ("missing rate",)
    assert table.columns == ("behind by (points)", "p")
    texts = [[entry.text for entry in line.entries] for line in table.lines]
    assert texts == [["86.7 ± 0.5", "0.188"], ["81.5", "-"]]


def test_what_answers_the_question_comes_first_and_is_open(text):
    honest = text.split("<h2>Protocol: ")[1]
    folds = re.findall(r"<details( open=\"open\")?><summary>([^<]*)</summary>", honest)
    opened = [title for state, title in folds if state]
    assert opened == [title for _, title in folds][: len(opened)]
    assert opened[0] == "Table: rivals, accuracy"
    assert "Table: scores, accuracy" in opened


def test_only_what_is_asked_for_is_shown(records):
    page = report_html(records, ReportContents("t", Look(), ("times",), ("scores",), ("F1",)))
    assert "<summary>Table: times</summary>" in page
    assert "<summary>Figure: scores, F1</summary>" in page
    assert ": ranks" not in page
    assert "accuracy" not in "".join(re.findall(r"<summary>([^<]*)</summary>", page))


def test_same_records_give_the_same_bytes(records, contents, text, tmp_path):
    path = write_report(tmp_path / "deep" / "a.html", records, contents)
    assert path.read_bytes() == text.encode()


def test_rates_sort_by_size_and_gaps_have_no_value():
    lines = (Line(("5%",), (Entry("-"),)), Line(("30%",), (Entry("x", 0.1 + 0.2),)))
    html = to_html(Table("t", ("rate",), ("value",), lines))
    assert re.findall(r'data-value="([^"]*)"', html) == ["5", "30", "0.3"]


class Browser:
    """Headless Chromium, spoken to over its debugging pipe: no driver, no port, no package."""

    def __init__(self, program, profile):
        fcntl = pytest.importorskip("fcntl", reason="the browser is driven over inherited pipes")
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        flags = (
            "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
            f"--remote-debugging-pipe --window-size=1200,900 --user-data-dir={profile}"
        )
        # The pipe has the numbers 3 and 4; duplicates of high number cannot be in their way.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 50) for end in (to_browser, from_browser)]
        actions = [(os.POSIX_SPAWN_DUP2, ends[0], 3), (os.POSIX_SPAWN_DUP2, ends[1], 4)]
        actions += [(os.POSIX_SPAWN_OPEN, n, os.devnull, os.O_WRONLY, 0) for n in (1, 2)]
        self._process = os.posix_spawn(
            program, [program, *flags.split()], os.environ, file_actions=actions, setpgroup=0
        )
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        self._buffer, self._numbers, self._session = b"", count(1), None

    def ask(self, method, **params):
        """Answer to one command; raises where the browser has ended."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self):
        while b"\0" not in self._buffer:
            piece = os.read(self._in, 65536)
            if not piece:
                raise EOFError("the browser has ended")
            self._buffer += piece
        text, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(text)

    def open(self, path):
        """A page of a file, loaded."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.ask("Page.enable")
        self.ask("Page.navigate", url=path.as_uri())
        while self._read().get("method") != "Page.loadEventFired":
            pass

    def value(self, expression):
        """Value of an expression in the page."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def mouse(self, element, *kinds):
        """Mouse events in the middle of an element, which is scrolled into view."""
        place = self.value(
            f"(() => {{ const e = {element};"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const r = e.getBoundingClientRect();"
            "return {x: r.x + r.width / 2, y: r.y + r.height / 2}; })()"
        )
        for kind in kinds:
            button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self.ask("Input.dispatchMouseEvent", type=kind, **place, **button)

    def click(self, element):
        self.mouse(element, "mouseMoved", "mousePressed", "mouseReleased")

    def press(self, key, code):
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if kind == "keyDown" else {}
            self.ask(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text
            )

    def close(self):
        os.killpg(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._out)
        os.close(self._in)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(names)} is on the PATH")
    found = Browser(program, tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


# The open table of scores under the protocol "honest", and a column of its body.
TABLE = (
    "[...document.querySelectorAll('table')]"
    ".find(t => /Accuracy.*honest/.test(t.caption.innerText))"
)
COLUMN = f"[...{TABLE}.tBodies[0].rows].map(row => row.cells[%d].innerText.trim())"
HEADER = f"{TABLE}.tHead.rows[0].cells[%d]"


@pytest.fixture
def page(browser, text, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(text, encoding="utf-8")
    browser.open(path)
    return browser


def test_clicking_a_header_sorts_and_says_so(page):
    able, baker = HEADER % 3, HEADER % 4
    assert page.value(COLUMN % 0) == ["Birds", "Digits", "Scenes"]
    assert page.value(f"{able}.getAttribute('aria-sort')") == "none"
    page.click(f"{able}.querySelector('button')")
    # By size, not by text: 10.00 comes before 61.00.
    assert page.value(COLUMN % 0) == ["Scenes", "Birds", "Digits"]
    assert page.value(f"{able}.getAttribute('aria-sort')") == "ascending"
    assert page.value("document.getElementById('spoken').innerText") == "Sorted by Able, ascending"
    page.click(f"{able}.querySelector('button')")
    assert page.value(COLUMN % 0) == ["Digits", "Birds", "Scenes"]
    # A gap stays last whichever way round.
    for order in (["Digits", "Birds", "Scenes"], ["Birds", "Digits", "Scenes"]):
        page.click(f"{baker}.querySelector('button')")
        assert page.value(COLUMN % 0) == order
    assert page.value(f"{able}.getAttribute('aria-sort')") == "none"


def test_summaries_stay_below(page):
    page.click(f"({HEADER % 0}).querySelector('button')")
    page.click(f"({HEADER % 0}).querySelector('button')")
    assert page.value(COLUMN % 0) == ["Scenes", "Digits", "Birds"]
    assert page.value(f"{TABLE}.tFoot.rows[0].cells[0].innerText") == "mean of the lines"


def test_a_header_works_from_the_keyboard(page):
    page.value(f"({HEADER % 3}).querySelector('button').focus()")
    page.press("Enter", 13)
    assert page.value(COLUMN % 0) == ["Scenes", "Birds", "Digits"]


def test_keys_hide_their_series_and_marks_tell_what_they_are(page):
    shown = "[...document.querySelectorAll('.key')].find(k => k.offsetParent)"
    count_shown = (
        f"(() => {{ const k = {shown}; return [...k.closest('figure').querySelectorAll("
        "'g[data-series]')].filter(g => g.dataset.series === k.dataset.series"
        " && getComputedStyle(g).display !== 'none').length; })()"
    )
    page.value("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    before = page.value(count_shown)
    assert before > 0
    page.click(shown)
    assert page.value(count_shown) == 0
    assert page.value(f"{shown}.getAttribute('aria-pressed')") == "false"
    page.click(shown)
    assert page.value(count_shown) == before
    # One that no mark of the paper covers.
    mark = "[...document.querySelectorAll('use[data-tip]')].find(m => /Baker/.test(m.dataset.tip))"
    page.mouse(mark, "mouseMoved")
    assert page.value("document.getElementById('tip').hidden") is False
    expected = page.value(f"{mark}.dataset.tip")
    assert page.value("document.getElementById('tip').innerText") == expected


def test_nothing_in_a_message_runs(page):
    text = page.value("document.getElementById('s3').innerText")
    assert "<script>alert('no')</script>" in text
    assert page.value("document.querySelectorAll('#s3 script').length") == 0


def test_a_narrow_window_scrolls_tables_not_the_page(page):
    page.ask(
        "Emulation.setDeviceMetricsOverride",
        width=390,
        height=800,
        deviceScaleFactor=1,
        mobile=True,
    )
    widths = page.value("[document.documentElement.scrollWidth, window.innerWidth]")
    page.ask("Emulation.clearDeviceMetricsOverride")
    assert widths[0] <= widths[1]
