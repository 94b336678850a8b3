"""Cards of data and fitted models in notebooks."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import estimator_html_repr

from viewmend import LabelSearchCV, MendClassifier, MultiViewData
from viewmend.baselines import AMGLClassifier, UnionGraphClassifier
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.html_repr import card, share_bar
from viewmend.impute import ColumnMeanImputer

BLOBS = make_multiview_blobs(60, n_views=3, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.3, random_state=0)
DATA = MultiViewData(TASK.data.views, TASK.data.observed, ("<b>photo", "text", "a & b"))
QUICK = MendClassifier(n_rounds=1, n_landmarks=20, representations=("unit",))


class Outline(HTMLParser):
    """Text of the page by tag; closing tags must match."""

    def __init__(self, page):
        super().__init__()
        self.open, self.texts = [], {}
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, _attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.texts.setdefault(self.open[-1], []).append(text)


def own_part(model):
    """The card alone, without scikit-learn's diagram, which has ids that change."""
    page = model._repr_html_()
    return page[: page.index("</table></div>") + len("</table></div>")]


def facts(page):
    texts = Outline(page).texts
    return dict(zip(texts["dt"], texts["dd"], strict=True))


def bars(page):
    return [float(width) for width in re.findall(r'style="width:([\d.]+)%"', page)]


def test_data_shows_names_columns_and_coverage():
    page = DATA._repr_html_()
    texts = Outline(page).texts
    coverage = [f"{share:.1%}" for share in DATA.observed.mean(axis=0)]
    rows = zip(DATA.names, map(str, DATA.n_features), coverage, strict=True)
    assert texts["th"] == ["view", "columns", "observed"]
    assert texts["td"] == [cell for row in rows for cell in row]
    np.testing.assert_allclose(bars(page), 100 * DATA.observed.mean(axis=0), atol=0.05)
    complete = DATA.observed.all(axis=1).sum()
    assert facts(page) == {"samples": "60", "complete": f"{complete} samples have all 3 views"}


def test_text_of_users_is_escaped():
    attack = "<script>alert('&')</script>"
    page = card(attack, {attack: attack}, {attack: [attack]})
    assert "<script" not in page
    texts = Outline(page).texts
    assert [texts[tag] for tag in ("strong", "dt", "dd", "th", "td")] == [[attack]] * 5


def test_labels_of_users_are_escaped():
    y = np.where(TASK.y < 0, None, np.array(["<script>", "b", "c"], dtype=object)[TASK.y])
    page = own_part(clone(QUICK).fit(DATA, y))
    assert "<script" not in page
    assert facts(page)["classes"] == "3: <script>, b, c"


def test_fitted_model_shows_coverage_weights_and_status_above_the_diagram():
    model = clone(QUICK).fit(DATA, TASK.y)
    page = own_part(model)
    assert facts(page) == {
        "samples": "60",
        "classes": "3: 0, 1, 2",
        "status": "done",
        "iterations": str(model.n_iter_),
        "accuracy": str(model.estimated_accuracy_),
    }
    expected = 100 * np.column_stack([DATA.observed.mean(axis=0), model.view_weights_])
    np.testing.assert_allclose(bars(page), expected.ravel(), atol=0.05)
    assert model._repr_html_()[len(page) :].count("sk-top-container") >= 1


def test_bundle_and_page_are_the_same_card():
    model = clone(QUICK).fit(DATA, TASK.y)
    bundle = model._repr_mimebundle_()
    assert bundle["text/html"].startswith(own_part(model))
    assert bundle["text/plain"] == repr(model)


def test_text_display_is_respected():
    model = clone(QUICK).fit(DATA, TASK.y)
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}


@pytest.mark.parametrize("estimator", [QUICK, ColumnMeanImputer(), LabelSearchCV(QUICK)])
def test_unfitted_estimators_show_the_diagram_alone(estimator):
    without_ids = [
        re.sub(r"sk-(container|estimator)-id-\d+", "", page)
        for page in (clone(estimator)._repr_html_(), estimator_html_repr(clone(estimator)))
    ]
    assert without_ids[0] == without_ids[1]


def test_search_shows_what_it_chose():
    search = LabelSearchCV(clone(QUICK), {"spreading": [0.9]}).fit(DATA, TASK.y)
    shown = facts(own_part(search))
    assert shown["chosen"] == str(search.best_params_)
    assert shown["iterations"] == str(search.best_estimator_.n_iter_)


def test_estimators_show_only_what_they_know():
    coverage = 100 * DATA.observed.mean(axis=0)
    page = own_part(ColumnMeanImputer().fit(DATA))
    assert Outline(page).texts["th"] == ["view", "columns", "observed in fit"]
    assert "dt" not in Outline(page).texts
    np.testing.assert_allclose(bars(page), coverage, atol=0.05)
    page = own_part(AMGLClassifier(imputer=ColumnMeanImputer()).fit(DATA, TASK.y))
    assert Outline(page).texts["th"] == ["view", "columns", "observed in fit", "weight"]
    np.testing.assert_allclose(bars(page)[::2], coverage, atol=0.05)
    assert sum(bars(page)[1::2]) == pytest.approx(100, abs=0.2)


@pytest.mark.filterwarnings("ignore::viewmend.exceptions.DataWarning")
def test_unreachable_samples_are_counted():
    far = np.vstack([np.eye(4, 8)] * 5 + [np.eye(8)[4:]] * 5)
    y = np.repeat([0, 1, -1], [10, 10, 20])
    y[:20] = np.tile([0, 0, 1, 1], 5)
    model = UnionGraphClassifier(n_neighbors=3).fit([far], y)
    assert model.unreachable_.sum() == 20
    assert facts(own_part(model))["unreachable"] == "20 samples"


def test_many_classes_are_cut_short():
    rows = np.random.default_rng(0).normal(size=(30, 4))
    page = own_part(UnionGraphClassifier().fit([rows], np.arange(30) % 10))
    assert facts(page)["classes"] == "10: 0, 1, 2, 3, 4, 5, 6, 7, ..."


@pytest.mark.parametrize(("share", "text"), [(0.0, "0.0%"), (0.25, "25.0%"), (1.0, "100.0%")])
def test_bar_is_filled_to_the_share(share, text):
    assert share_bar(share).endswith(f'style="width:{text}"></span></span>{text}')
