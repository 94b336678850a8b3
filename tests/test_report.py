"""The report of a fitted model: one file that says what is known, and how to know more."""

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, f1_score

import viewmend
from viewmend import AGFTIClassifier, LabelSearchCV, MendClassifier
from viewmend.baselines import NaNBoostingClassifier, UnionGraphClassifier
from viewmend.data import from_frames
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidParameterError
from viewmend.report import report_html, write_report
from viewmend.report.context import Case, make_case
from viewmend.report.html import Cell, advice, table_html
from viewmend.report.page import SECTIONS

CLASSES = np.array(["<b>one</b>", "two & $x$", '"three"'], dtype=object)
VIEWS = ("<script>alert('v')</script>", "plain")


class Task:
    """Blobs whose classes, views and samples have names that must be escaped."""

    def __init__(self):
        blobs = make_multiview_blobs(90, n_views=2, n_classes=3, random_state=0)
        task = hide(blobs.views, blobs.y, missing_rate=0.4, label_rate=0.2, random_state=0)
        self.X = dict(zip(VIEWS, task.data.views, strict=True))
        self.y = np.where(task.y < 0, None, CLASSES[task.y])
        self.y_true = CLASSES[task.y_true]
        self.unlabelled = task.unlabelled
        self.observed = task.data.observed
        self.ids = np.array([f"<i>{row}" for row in range(90)])


@pytest.fixture(scope="module", autouse=True)
def day():
    """The day on the pages, 18 November 2026."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1795000000")
        yield


@pytest.fixture(scope="module")
def task():
    return Task()


@pytest.fixture(scope="module")
def mend(task):
    return MendClassifier(n_rounds=2).fit(task.X, task.y)


@pytest.fixture(scope="module")
def agfti(task):
    return AGFTIClassifier(random_state=0, tol=1e-3).fit(task.X, task.y)


def section(name, model, *given, **more):
    """Text of one section, without pictures and markup."""
    inside = SECTIONS[name][1](make_case(model, *given, **more))
    inside = re.sub(r"<svg.*?</svg>", "", inside, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "\n", inside))


@pytest.fixture(scope="module")
def page(mend, task, tmp_path_factory):
    given = {"X": task.X, "y": task.y, "y_true": task.y_true, "ids": task.ids}
    path = tmp_path_factory.mktemp("report") / "deep" / "report.html"
    assert mend.report(path, **given) == path
    return path.read_text(encoding="utf-8")


class Balance(HTMLParser):
    """Checks that what is opened is closed, and collects ids and what would be loaded."""

    VOID = ("meta",)

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for key, value in attrs if key == "id"]
        links = [value for key, value in attrs if key in ("src", "href", "xlink:href")]
        self.loads += [link for link in links if not link.startswith(("#", "data:image/png"))]
        self.loads += [tag] if tag in ("link", "iframe", "img", "object") else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_well_formed_and_loads_nothing(page):
    parser = Balance()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    assert parser.loads == []
    assert "http" not in page
    assert "@import" not in page
    assert len(parser.ids) == len(set(parser.ids))
    inner = re.findall(r'(?:href="#|url\(#)([^")]+)', page)
    assert len(inner) > len(SECTIONS)
    assert set(inner) <= set(parser.ids)


def test_names_of_classes_views_and_samples_are_text(page):
    for name in (*CLASSES[:2], VIEWS[0], "<i>"):
        assert name not in page
        assert html.escape(name) in page
    # The only script is that of the page.
    assert page.count("<script") == 1


def test_same_arguments_give_the_same_bytes_and_change_nothing(mend, task, page, tmp_path):
    before = mend.label_distributions_.copy(), mend.transduction_.copy(), set(vars(mend))
    path = str(tmp_path / "again.html")
    again = write_report(mend, path, task.X, task.y, y_true=task.y_true, ids=task.ids)
    assert again.read_bytes() == page.encode()
    np.testing.assert_array_equal(mend.label_distributions_, before[0])
    np.testing.assert_array_equal(mend.transduction_, before[1])
    assert set(vars(mend)) == before[2]


def test_a_model_that_was_kept_has_the_same_report(mend, task, page, tmp_path):
    viewmend.save(mend, tmp_path / "model.vm")
    kept = viewmend.load(tmp_path / "model.vm")
    path = kept.report(tmp_path / "kept.html", task.X, task.y, y_true=task.y_true, ids=task.ids)
    assert path.read_bytes() == page.encode()


def test_scores_are_those_of_the_unlabelled_samples(mend, task):
    truth, found = task.y_true[task.unlabelled], mend.transduction_[task.unlabelled]
    text = section("result", mend, y=task.y, y_true=task.y_true)
    assert f"accuracy\n\n{accuracy_score(list(truth), list(found)):.1%}" in text
    assert f"macro F1\n\n{f1_score(list(truth), list(found), average='macro'):.1%}" in text
    assert f"judged samples\n\n{task.unlabelled.sum()}" in text


def test_true_labels_of_given_samples_are_not_judged(mend, task):
    """Other answers for labelled samples change nothing."""
    other = np.where(task.unlabelled, task.y_true, np.roll(task.y_true, 1))
    assert (other != task.y_true).any()
    for name in ("result", "classes", "doubt"):
        texts = [section(name, mend, y=task.y, y_true=truth) for truth in (task.y_true, other)]
        assert texts[0] == texts[1]


def test_unknown_answers_are_left_out(mend, task):
    known = np.flatnonzero(task.unlabelled)[:30]
    some = np.full(90, None, dtype=object)
    some[known] = task.y_true[known]
    text = section("result", mend, y=task.y, y_true=some)
    assert "judged samples\n\n30" in text


def test_without_given_labels_scores_say_that_they_are_too_good(task):
    text = section("result", UnionGraphClassifier().fit(task.X, task.y), y_true=task.y_true)
    assert "judged samples\n\n90" in text
    assert "the scores are too good" in text


def test_a_class_without_labels_is_a_class_of_the_scores(mend, task):
    strange = task.y_true.copy()
    strange[np.flatnonzero(task.unlabelled)[:3]] = "unheard of"
    text = section("result", mend, y=task.y, y_true=strange)
    assert "unheard of\n\n0.0%\n\n0.0%\n\n0.0%\n\n3" in text
    assert "of classes without a label\n\n3 of them, which count as wrong: unheard of" in text


def test_a_report_knows_the_labels_and_names_of_the_fit(task, tmp_path):
    frames = [pd.DataFrame(view, index=task.ids) for view in task.X.values()]
    data = from_frames(dict(zip(VIEWS, frames, strict=True)), pd.Series(task.y, task.ids))
    doubting = MendClassifier(n_rounds=2, label_noise=0.3).fit(data)
    told = doubting.report(tmp_path / "told.html", data, data.y, ids=data.ids)
    assert doubting.report(tmp_path / "known.html", data).read_bytes() == told.read_bytes()
    union = UnionGraphClassifier().fit(data)
    told = section("classes", union, data, data.y, ids=data.ids)
    assert section("classes", union, data, ids=data.ids) == told


def test_what_comes_in_another_order_than_in_fit_is_refused(task, tmp_path):
    frames = {name: pd.DataFrame(view, index=task.ids) for name, view in task.X.items()}
    y, truth = (pd.Series(labels, index=task.ids) for labels in (task.y, task.y_true))
    mask = pd.DataFrame(task.observed, index=task.ids)
    model = UnionGraphClassifier().fit(frames, y)
    make_case(model, frames, y, y_true=truth)
    turned = {name: frame[::-1] for name, frame in frames.items()}
    path = tmp_path / "no.html"
    with pytest.raises(InvalidParameterError, match="X must have the samples in the order of fit"):
        write_report(model, path, turned)
    for what, told in {"y": y, "y_true": truth, "mask": mask}.items():
        with pytest.raises(InvalidParameterError, match=f"{what} must have its rows in the order"):
            write_report(model, path, **{what: told[::-1]})


def test_answers_of_another_type_are_not_all_wrong(task):
    numbers = np.unique(task.y_true, return_inverse=True)[1]
    model = UnionGraphClassifier().fit(task.X, np.where(task.y == None, -1, numbers))  # noqa: E711
    with pytest.raises(InvalidLabelsError, match="y must call the classes as fit did, but has '0'"):
        make_case(model, y_true=numbers.astype(str))


def test_every_one_of_many_classes_is_named_beside_the_confusions():
    codes = np.repeat(np.arange(50), 3)
    names = np.array([f"diagnosis {i}" for i in range(50)], dtype=object)[codes]
    given = np.where(np.arange(150) % 3 == 0, names, None)
    model = UnionGraphClassifier(n_neighbors=2).fit([np.eye(50)[codes] + 0.01], given)
    page = report_html(make_case(model, y=given, y_true=names))
    drawn = re.search(r'<svg[^>]*aria-label="Confusion.*?</svg>', page, re.DOTALL)[0]
    for name in np.unique(names):
        assert len(re.findall(f">{name}<", drawn)) == 2, name


def test_answers_of_no_class_of_the_model_are_refused(mend, task):
    shouted = np.array([name.upper() for name in task.y_true])
    with pytest.raises(
        InvalidLabelsError, match=r"y_true must hold classes of the model, .* alike"
    ):
        make_case(mend, y=task.y, y_true=shouted)
    with pytest.raises(InvalidLabelsError, match="90 samples without one; leave it out"):
        make_case(mend, y=task.y, y_true=[None] * 90)


def test_answers_of_a_single_class_are_enough(mend, task):
    only = np.where(task.y_true == CLASSES[0], task.y_true, None)
    asked = task.unlabelled & (only != None)  # noqa: E711
    recall = np.mean(mend.transduction_[asked] == CLASSES[0])
    text = section("result", mend, y=task.y, y_true=only)
    assert f"accuracy\n\n{recall:.1%}" in text
    assert f"judged samples\n\n{asked.sum()}" in text


def test_sections_without_data_say_how_to_get_them(mend, task):
    assert "Pass the views of fit as \nX=\n" in section("data", mend)
    union = UnionGraphClassifier().fit(task.X, task.y)
    assert "Pass the labels of fit as \ny=\n" in section("classes", union)
    assert "Pass true labels as \ny_true=\n" in section("result", mend)


def test_a_mask_alone_shows_who_has_which_view(mend, task):
    text = section("views", mend, mask=task.observed)
    assert "most frequent on top" in text
    assert "to see findings about their contents" in text


def test_parameters_that_were_set_are_shown_with_their_defaults(mend, task):
    text = section("internals", mend)
    assert re.search(r"n_rounds\s+2\s+8", text)
    assert "spreading" not in text
    plain = UnionGraphClassifier().fit(task.X, task.y)
    text = section("internals", plain)
    assert "All parameters have their default values." in text
    assert "chosen" not in text


def test_findings_about_the_data_are_shown(task):
    views = {name: view.copy() for name, view in task.X.items()}
    views["plain"][np.flatnonzero(task.observed.all(axis=1))[:2]] = 0
    model = UnionGraphClassifier().fit(views, task.y)
    text = section("doubt", model, views, task.y)
    assert re.search(r"plain\s+2 row\(s\) are all zero", text)


def test_least_certain_samples_come_first_and_have_no_given_label(mend, task):
    case = make_case(mend, task.X, task.y)
    table = section("doubt", mend, task.X, task.y, ids=task.ids).split("Least certain samples")[1]
    shown = [int(row) for row in re.findall(r"<i>(\d+)", table)]
    hidden = np.flatnonzero(task.unlabelled)
    np.testing.assert_array_equal(
        case.confidence[shown], np.sort(case.confidence[hidden])[: len(shown)]
    )
    assert set(shown) <= set(hidden)


def test_samples_out_of_reach_are_named(task):
    """Ten samples in another direction than all others, and none of them labelled."""
    rng = np.random.default_rng(0)
    near, far = rng.normal([0, 9], size=(30, 2)), rng.normal([9, 0], size=(10, 2))
    y = np.full(40, -1)
    y[:8] = np.arange(8) % 2
    with pytest.warns(DataWarning, match="joined to no label"):
        model = UnionGraphClassifier(n_neighbors=3).fit([np.vstack([near, far])], y)
    lost = np.flatnonzero(model.unreachable_)
    assert len(lost)
    text = section("doubt", model, y=y)
    assert f"{len(lost)} samples are unreachable" in text
    assert f"They are: {', '.join(map(str, lost))}." in text


def test_abstained_are_unlabelled_samples_of_low_confidence(mend, task):
    case = make_case(mend, task.X, task.y)
    decided = mend.decide()
    np.testing.assert_array_equal(case.abstained, decided.abstained | mend.unreachable_)


def test_agfti_draws_before_and_after_imputation(agfti, task, tmp_path):
    assert "share one place until their rows are imputed" in section("internals", agfti, task.X)
    path = write_report(agfti, tmp_path / "report.html", task.X, task.y)
    assert path.read_text(encoding="utf-8").count("before imputation</text>") == 1


def test_methods_without_weights_rounds_or_graph_say_so(task):
    model = NaNBoostingClassifier().fit(task.X, task.y)
    assert "NaNBoostingClassifier has no view weights" in section("views", model)
    assert "solved in one go" in section("internals", model)
    assert "keeps no graph" in section("internals", model)


def test_a_search_shows_its_points_and_the_model_it_chose(task):
    search = LabelSearchCV(MendClassifier(n_rounds=0), {"spreading": [0.5, 0.9]}, cv=2)
    search.fit(task.X, task.y)
    text = section("internals", search, task.X, task.y)
    assert "Chosen among 3 points" in text
    assert f"spreading {search.best_params_['spreading']}" in text
    table = text.split("Points of the grid")[1]
    for score in search.cv_results_["mean_test_score"]:
        assert f"{score:.1%}" in table
    assert "MendClassifier" in text
    assert "Chosen among" not in section("internals", search.best_estimator_)


def test_stacked_data_is_read_as_in_fit(task):
    stacked = np.hstack(list(task.X.values()))
    sizes = [view.shape[1] for view in task.X.values()]
    model = UnionGraphClassifier(view_sizes=sizes).fit(stacked, task.y)
    case = make_case(model, stacked, task.y)
    np.testing.assert_array_equal(case.observed, task.observed)
    assert [view.n_columns for view in case.inspection.views] == sizes


def test_what_is_not_of_fit_is_refused(mend, task, tmp_path):
    path = tmp_path / "no.html"
    with pytest.raises(NotFittedError):
        write_report(MendClassifier(), path)
    with pytest.raises(InvalidParameterError, match="90 samples in 2 views, got 80 x 2"):
        write_report(mend, path, X={name: view[:80] for name, view in task.X.items()})
    with pytest.raises(InvalidParameterError, match=r"got shape \(3,\) for 90 samples"):
        write_report(mend, path, ids=["a", "b", "c"])
    with pytest.raises(InvalidLabelsError, match="pass the y of fit, and true labels as y_true"):
        write_report(mend, path, y=np.where(task.y_true == CLASSES[0], "new", task.y_true))
    assert not path.exists()


def test_confidence_is_the_share_of_the_class_told(mend):
    """Also where a given label is not the class of largest share."""
    case = Case(mend, np.arange(90))
    told = case.classes[case.told]
    assert list(told) == list(mend.transduction_)
    column = {name: c for c, name in enumerate(mend.classes_)}
    expected = [mend.label_distributions_[i, column[name]] for i, name in enumerate(told)]
    np.testing.assert_array_equal(case.confidence, expected)


def test_cells_sort_by_their_value_and_text_is_escaped():
    page = table_html("a & b", ("x<",), [[Cell("<1>", 0.1 + 0.2)], [Cell("none")]])
    assert re.findall(r'data-value="([^"]*)"', page) == ["0.3"]
    assert "<caption>a &amp; b</caption>" in page
    assert "&lt;1&gt;" in page
    assert "x&lt;" in page


def test_backquotes_are_code_in_advice():
    assert advice("pass `a<b` now") == '<p class="advice">pass <code>a&lt;b</code> now</p>'


# Run in the page after its own script: what is there, what a click does, what was loaded.
PROBE = """<script>
const table = [...document.querySelectorAll("table")]
  .find((one) => one.caption.textContent === "Least certain samples");
const header = [...table.tHead.rows[0].cells].find((one) => /confidence/.test(one.textContent));
const column = () => [...table.tBodies[0].rows].map((row) => Number(
  row.cells[header.cellIndex].dataset.value));
const orders = [column()];
for (const _ of [0, 1]) { header.querySelector("button").click(); orders.push(column()); }
const found = {
  sections: [...document.querySelectorAll("main > section")].map((one) => one.id),
  pictures: [...document.querySelectorAll("figure svg")].filter(
    (one) => !one.closest("details")).map((one) => one.clientHeight),
  folded: Object.fromEntries(["internals", "doubt"].map((id) => [id,
    document.querySelectorAll(`#${id} details:not([open])`).length])),
  smallest: Math.min(...[...document.querySelectorAll("figure svg text")].filter(
    (one) => one.getBoundingClientRect().height > 0).map((one) => parseFloat(
    getComputedStyle(one).fontSize) * one.ownerSVGElement.clientWidth
    / one.ownerSVGElement.viewBox.baseVal.width)),
  orders, sort: header.getAttribute("aria-sort"),
  spoken: document.getElementById("spoken").textContent,
  alerts: document.querySelectorAll("main script, main b b, main i").length,
  loaded: performance.getEntriesByType("resource").length,
  widths: [document.documentElement.scrollWidth, window.innerWidth],
};
document.body.insertAdjacentHTML("beforeend", "<pre id=probe></pre>");
document.getElementById("probe").textContent = JSON.stringify(found);
</script></body>"""


@pytest.fixture(scope="module")
def probed(page, tmp_path_factory):
    """What a browser without network finds in the page, and what it complains of."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(names)} is on the PATH")
    folder = tmp_path_factory.mktemp("browser")
    path = folder / "report.html"
    path.write_text(page.replace("</body>", PROBE), encoding="utf-8")
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
        "--enable-logging=stderr --dump-dom --window-size=500,900"
    )
    closed = ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}"]
    command = [program, *flags.split(), *closed, path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    told = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL).group(1)
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(told)), complaints


def test_browser_shows_every_section_and_complains_of_nothing(probed):
    found, complaints = probed
    assert complaints == []
    assert found["sections"] == list(SECTIONS)
    assert len(found["pictures"]) == 9
    assert min(found["pictures"]) > 100
    assert found["folded"] == {"internals": 4, "doubt": 1}
    assert found["loaded"] == 0
    assert found["alerts"] == 0


def test_text_of_charts_can_be_read_in_a_narrow_window(probed):
    assert probed[0]["smallest"] >= 9


def test_clicking_a_header_sorts_and_says_so(probed):
    start, ascending, descending = probed[0]["orders"]
    assert ascending == sorted(start)
    assert descending == sorted(start, reverse=True)
    assert ascending != descending
    assert probed[0]["sort"] == "descending"
    assert probed[0]["spoken"] == "Sorted by confidence, descending"


def test_a_narrow_window_scrolls_tables_not_the_page(probed):
    assert probed[0]["widths"][0] <= probed[0]["widths"][1]
