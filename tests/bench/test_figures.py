"""Charts hold the records' numbers, and files and pages show what the charts hold."""

import re
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser
from io import BytesIO

import numpy as np
import pytest
from matplotlib.text import Text

from viewmend.bench.catalogue import FIGURES
from viewmend.bench.charts.chart import Chart, Panel, Series, strokes
from viewmend.bench.charts.drawing import draw_chart
from viewmend.bench.charts.page import chart_html
from viewmend.bench.paper_values import Footprint, Look, PaperTables, PaperValue
from viewmend.bench.runs import Record, RunKey, setting_of
from viewmend.bench.stats import critical_difference
from viewmend.exceptions import InvalidParameterError

VARIANTS = ("AGF-TI", "AGF-TI without alignment", "AGF-TI without weights")


def run(method="AGF-TI", data="Birds", repetition=0, score=80.0, rates=(0.3, 0.05), **more):
    setting = setting_of(more.pop("setting", {}))
    key = RunKey("fit", "paper", data, *rates, method, setting, repetition)
    names = ("accuracy", "macro_precision", "macro_recall", "macro_f1")
    return Record(key, "done", dict.fromkeys(names, score / 100), {"fit": 1.0, **more})


def trace(history, method="AGF-TI", repetition=0):
    key = RunKey("trace", "paper", "Birds", 0.5, 0.05, method, (), repetition)
    return Record(key, "done", {"history": history})


def rounds(n):
    return [
        {
            "iteration": k + 1,
            "alpha": [0.5 + 0.1 / (k + 1), 0.5 - 0.1 / (k + 1)],
            "change_F": 10.0**-k,
            "change_Q": 10.0**-k / 2,
            "change_alpha": 0.0 if k == 1 else 10.0**-k / 3,
            "primal_residual": 10.0 ** (-2 * k),
            "inner": [{"alpha_error": 1e-3, "P_error": 1e-5}, {"alpha_error": 1e-6, "P_error": 0}],
        }
        for k in range(n)
    ]


def tensor_step(n, n_views, m, seconds):
    setting = setting_of({"n": n, "V": n_views, "m": m})
    key = RunKey("tnn_step", "paper", "", 0.0, 0.05, "AGF-TI", setting, 0)
    return Record(key, "done", {}, {"seconds": seconds, "peak_bytes": 2**30 * seconds})


def ablations():
    return [
        run(method, data, i, 80.0 - 10 * v + i, (rate, 0.05))
        for data in ("Birds", "Digits")
        for rate in (0.3, 0.7)
        for v, method in enumerate(VARIANTS)
        for i in range(3)
    ]


def scarcities():
    return [
        run(method, "Birds", i, 50 + 1000 * rate + shift + i, (0.6, rate))
        for rate in (0.08, 0.01, 0.02, 0.04)
        for shift, method in enumerate("ABC")
        for i in range(2)
    ]


def surface():
    return [
        run(setting={"graph_smoothing": beta, "low_rank_weight": rho}, score=10 * beta + rho)
        for beta in (4, 1, 2)
        for rho in (2, 1)
        if (beta, rho) != (4, 2)
    ]


PRINTED = PaperTables(
    {
        ("Birds", 0.3, 0.05, "AGF-TI", "ACC"): PaperValue(78.0, "accuracy", 1.0),
        ("Birds", 0.3, 0.05, "AGF-TI w/o T", "ACC"): PaperValue(66.0, "accuracy", 1.0),
    },
    {("Birds", "AGF-TI"): 3.5},
    {(1000, 2, 128): Footprint(0.5, 0.25)},
)
LOOK = Look(paper=PRINTED)
PLAIN = Look()


def only(panel, name, ghost=False):
    (found,) = [one for one in panel.series if (one.name, one.ghost) == (name, ghost)]
    return found


def test_ablation_bars_are_means_with_the_papers_values_as_ghosts():
    low, high = FIGURES.build("ablation", ablations(), LOOK).panels
    assert (low.title, high.title) == ("VMR 30%", "VMR 70%")
    assert low.x_ticks == ("Birds", "Digits")
    full, cut = only(low, VARIANTS[0]), only(low, VARIANTS[1])
    assert full.y == pytest.approx((81, 81))
    assert cut.y == pytest.approx((71, 71))
    assert full.error == pytest.approx((np.sqrt(2 / 3),) * 2)
    assert only(low, VARIANTS[0], ghost=True).y == (78.0,)
    assert only(low, VARIANTS[1], ghost=True).x == (0.0,)
    assert not any(one.ghost for one in high.series)


def test_bars_of_the_figure_have_the_heights_of_the_chart():
    chart = FIGURES.build("ablation", ablations(), LOOK)
    (ax, _) = draw_chart(chart).axes
    drawn = sorted(bar.get_height() for bar in ax.patches)
    held = sorted(y for one in chart.panels[0].series if not one.ghost for y in one.y)
    assert drawn == pytest.approx(held)


def test_label_scarcity_runs_along_ascending_rates():
    (panel,) = FIGURES.build("label_scarcity", scarcities(), PLAIN).panels
    assert panel.x_ticks == ("1%", "2%", "4%", "8%")
    line = only(panel, "B")
    assert line.x == (0, 1, 2, 3)
    assert line.y == pytest.approx((61.5, 71.5, 91.5, 131.5))


def test_scores_stand_on_the_rows_of_their_methods_best_on_top():
    records = ablations()
    panel = FIGURES.build("scores", records, LOOK).panels[0]
    assert panel.y_ticks == VARIANTS
    found = only(panel, "VMR 30%")
    assert dict(zip(found.y, found.x, strict=True)) == pytest.approx({0: 81, 1: 71, 2: 61})
    ghost = only(panel, "VMR 30%", ghost=True)
    assert dict(zip(ghost.y, ghost.x, strict=True)) == {0: 78.0, 1: 66.0}


def test_surface_has_every_mean_at_its_place_and_gaps_stay_gaps():
    records = [*surface(), replace(surface()[0], result={"accuracy": 0.5})]
    (panel,) = FIGURES.build("sensitivity_surface", records, PLAIN).panels
    assert (panel.x_ticks, panel.y_ticks) == (("1", "2", "4"), ("1", "2"))
    expected = [[11, 21, (41 + 50) / 2], [12, 22, np.nan]]
    np.testing.assert_allclose(panel.values, expected)
    assert "graph_smoothing" in panel.x_label


def test_curves_of_data_sets_with_values_of_their_own_have_axes_of_their_own():
    records = [
        run(data=data, setting={"n_anchors": m}, repetition=i, score=m / 10 + i)
        for data, values in (("Birds", (16, 32)), ("Digits", (64, 128)), ("Scenes", (64, 128)))
        for m in values
        for i in range(2)
    ]
    birds, others = FIGURES.build("sensitivity_curve", records, PLAIN).panels
    assert birds.x_ticks == ("16", "32")
    assert [one.name for one in others.series] == ["Digits", "Scenes"]
    assert only(birds, "Birds").y == pytest.approx((2.1, 3.7))


def test_ranks_join_what_lies_within_the_critical_difference():
    records = [
        run(method, data, score=90 - 10 * place)
        for data in map(str, range(30))
        for place, method in enumerate("ABCD")
    ]
    (panel,) = FIGURES.build("ranks", records, PLAIN).panels
    assert panel.names == tuple("ABCD")
    assert panel.ranks == (1, 2, 3, 4)
    # q(4) sqrt(4 * 5 / 180) is below one rank: nothing is joined.
    assert panel.difference == critical_difference(4, 30) < 1
    assert panel.groups == ()
    few = [one for one in records if int(one.key.data) < 10]
    (panel,) = FIGURES.build("ranks", few, PLAIN).panels
    assert 1 < panel.difference < 2
    assert panel.groups == ((1, 2), (2, 3), (3, 4))


def test_times_tell_fit_and_completion_apart():
    records = [run("AGF-TI", fit=8.0), run("B", fit=2.0, imputation=4.0)]
    (panel,) = FIGURES.build("running_time", records, LOOK).panels
    assert panel.y_ticks == ("B", "AGF-TI")
    assert only(panel, "fit").x == (2.0, 8.0)
    assert (only(panel, "fit + completion").x, only(panel, "fit + completion").y) == ((6.0,), (0,))
    assert only(panel, "fit + completion", ghost=True).x == (3.5,)


def test_traces_show_the_first_repetition_round_by_round():
    history = rounds(4)
    records = [trace(rounds(2), repetition=1), trace(history), trace(history, "CFMSC")]
    weights = FIGURES.build("view_weights", records, PLAIN).panels
    assert [panel.title for panel in weights] == ["Birds: AGF-TI", "Birds: CFMSC"]
    total = np.sum([one.y for one in weights[0].series], axis=0)
    np.testing.assert_allclose(total, np.ones(4))
    changes = FIGURES.build("convergence", records, PLAIN).panels[0]
    assert only(changes, "soft labels F").y == tuple(one["change_F"] for one in history)
    inner = FIGURES.build("inner_errors", records, PLAIN).panels[0]
    assert only(inner, "view weights").x == (1, 2)
    assert only(inner, "view weights").y == (1e-3, 1e-6)


def test_a_trace_of_weights_alone_has_no_convergence():
    history = [{"iteration": 1, "alpha": [1.0]}]
    assert FIGURES.suitable([trace(history, "CFMSC")], PLAIN) == ["view_weights"]
    both = [trace(rounds(3)), trace(history, "CFMSC")]
    assert len(FIGURES.build("convergence", both, PLAIN).panels) == 1


def test_the_accuracy_of_every_round_stands_beside_its_changes():
    history = [{**one, "accuracy": 0.5 + i / 10} for i, one in enumerate(rounds(3))]
    chart = FIGURES.build("convergence", [trace(history), trace(rounds(2), "other")], PLAIN)
    _, accuracy, _ = chart.panels
    assert (accuracy.title, accuracy.y_label, chart.columns) == ("Birds: AGF-TI", "ACC (%)", 2)
    assert only(accuracy, "accuracy").y == pytest.approx((50, 60, 70))


def test_footprints_lie_at_their_numbers_of_anchors():
    records = [tensor_step(1000, 2, m, m / 64) for m in (512, 128)]
    seconds, memory = FIGURES.build("footprint", records, LOOK).panels
    assert seconds.x_ticks == ("128", "512")
    assert only(seconds, "2 views").y == (2.0, 8.0)
    assert only(memory, "2 views").y == (2.0, 8.0)
    assert (only(seconds, "2 views", True).x, only(memory, "2 views", True).y) == ((0,), (0.25,))


def test_agreement_with_the_paper_lies_on_the_diagonal():
    records = [run("AGF-TI", score=78.0), run("AGF-TI without alignment", score=60.0)]
    (panel,) = FIGURES.build("paper", records, LOOK).panels
    full, cut = panel.series
    assert full.x == full.y == (78.0,)
    assert (cut.x, cut.y) == ((66.0,), (60.0,))
    assert "paper" not in FIGURES.suitable([run("Unprinted")], LOOK)


def test_ghosts_are_drawn_only_where_the_paper_measures_the_same():
    printed = PaperTables(
        {("Birds", 0.3, 0.05, "AGF-TI", "PREC"): PaperValue(70.0, "macro_recall", 1.0)}
    )
    for protocol, n_ghosts in (("paper", 1), ("honest", 0)):
        records = [
            replace(one, key=replace(one.key, protocol=protocol)) for one in (run(), run("B"))
        ]
        (panel,) = FIGURES.build("scores", records, Look("PREC", paper=printed)).panels
        assert sum(one.ghost for one in panel.series) == n_ghosts


SETS = {
    "ablation": ablations(),
    "label_scarcity": scarcities(),
    "sensitivity_surface": surface(),
    "traces": [trace(rounds(5)), trace(rounds(3), "CFMSC")],
    "footprint": [tensor_step(1000, v, m, m * v / 64) for v in (2, 3) for m in (128, 256)],
    "curve": [run(setting={"n_anchors": m}, score=m) for m in (16, 32)],
}
FOUND = [(key, name) for key, own in SETS.items() for name in FIGURES.suitable(own, LOOK)]


def test_every_figure_is_drawn_by_some_records():
    assert {name for _, name in FOUND} == set(FIGURES)


@pytest.mark.parametrize(("key", "name"), FOUND)
def test_page_and_file_show_every_mark_and_every_name(key, name):
    """Also that Matplotlib has nothing to warn about: zeros on log axes, gaps, long names."""
    chart = FIGURES.build(name, SETS[key], LOOK)
    html = chart_html(chart, "x")
    panels = [panel for panel in chart.panels if isinstance(panel, Panel)]
    n_marks = sum(
        sum(y > 0 or not panel.log_y for y in one.y) for panel in panels for one in panel.series
    )
    n_tiles = sum(np.isfinite(p.values).sum() for p in chart.panels if p.kind == "surface")
    # A tile and the number in it have one each.
    assert html.count("data-tip=") == n_marks + 2 * n_tiles
    figure = draw_chart(chart)
    written = BytesIO()
    figure.savefig(written, format="png")
    assert written.getvalue().startswith(b"\x89PNG")
    drawn = {text.get_text().strip() for text in figure.findobj(Text)}
    for panel in chart.panels:
        assert escape(panel.title) in html
        assert panel.title in drawn
        ticks = {*getattr(panel, "x_ticks", ()), *getattr(panel, "y_ticks", ())}
        assert ticks <= drawn
        assert all(f">{escape(tick)}</text>" in html for tick in ticks)
    assert set(strokes(chart)) <= drawn
    assert len(set(strokes(chart).values())) == len(strokes(chart))


def marks_of(html):
    """Tip, x and y of every mark of a page."""
    found = re.findall(r'<use data-tip="([^"]*)" [^>]*?x="([^"]*)" y="([^"]*)"', html)
    return [(unescape(tip), float(x), float(y)) for tip, x, y in found]


@pytest.mark.parametrize("log_y", [False, True])
def test_tips_stand_at_their_marks_and_say_the_number(log_y):
    """Places are an affine image of the numbers in the tips, or of their logarithms."""
    rng = np.random.default_rng(0)
    values = np.round(rng.uniform(1, 90, (3, 6)), 2)
    values[1, 2] = np.nan
    lines = [
        Series(f"line {i}", tuple(map(float, range(6))), tuple(y), (0.5,) * 6)
        for i, y in enumerate(values.tolist())
    ]
    panel = Panel("p", "round", "y", tuple(lines), log_y=log_y)
    marks = marks_of(chart_html(Chart("t", (panel,)), "x"))
    assert len(marks) == 17
    told = [
        re.fullmatch(r"line (\d), round (\d): ([\d.]+) ± 0.50", tip).groups() for tip, _, _ in marks
    ]
    numbers = np.array(told, dtype=float)
    # In the order drawn, every number but the gap.
    np.testing.assert_array_equal(numbers[:, 2], values[np.isfinite(values)])
    heights = np.log(numbers[:, 2]) if log_y else numbers[:, 2]
    for place, value in ((1, numbers[:, 1]), (2, heights)):
        drawn = [mark[place] for mark in marks]
        fit = np.polyfit(value, drawn, 1)
        np.testing.assert_allclose(np.polyval(fit, value), drawn, atol=0.02)


def test_lines_break_where_a_log_axis_has_no_place():
    line = Series("a", (1.0, 2.0, 3.0, 4.0), (1.0, 0.0, 0.1, 0.01))
    html = chart_html(Chart("t", (Panel("p", "x", "y", (line,), log_y=True),)), "x")
    (path,) = re.findall(r'<g data-series="a">\s*<path d="([^"]*)"', html)
    assert re.findall(r"[ML]", path) == ["M", "M", "L"]


@pytest.mark.parametrize("ends", [(2.0, 8.0), (0.5, 40.0), (1e-8, 1.0), (3.0, 3.1), (1e-3, 1e3)])
def test_log_axes_have_some_ticks_and_not_too_many(ends):
    panel = Panel("p", "x", "y", (Series("a", (0.0, 1.0), ends),), log_y=True)
    figure = draw_chart(Chart("t", (panel,)))
    figure.canvas.draw()
    (ax,) = figure.axes
    low, high = ax.get_ylim()
    shown = [tick for tick in ax.get_yticks() if low <= tick <= high]
    assert 1 <= len(shown) <= 10
    assert all(
        f"{tick:g}" in [label.get_text() for label in ax.get_yticklabels()] for tick in shown
    )


HOSTILE = ("<script>alert('m')</script>", "$$ 5 $", '" onload="alert(1)', "a & b \\frac")


class Names(HTMLParser):
    """Collects elements, series and tips as a browser reads them."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes = set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def values(self, name):
        return {value for key, value in self.attributes if key == name}


@pytest.mark.parametrize("name", ["scores", "ablation", "ranks", "label_scarcity", "running_time"])
def test_hostile_names_are_text(name):
    label_rates = (0.05, 0.1) if name == "label_scarcity" else (0.05,)
    records = [
        run(method, data, i, 80.0 - 5 * m + i, (0.3, rate), imputation=1.0)
        for m, method in enumerate(HOSTILE)
        for data in HOSTILE[:2]
        for rate in label_rates
        for i in range(2)
    ]
    chart = FIGURES.build(name, records, Look(subject=""))
    page = Names()
    page.feed(chart_html(chart, "x"))
    assert "script" not in page.tags
    assert not any(key.startswith("on") for key, _ in page.attributes)
    assert {series.name for p in chart.panels for series in getattr(p, "series", ())} == (
        page.values("data-series")
    )
    tips = " ".join(page.values("data-tip"))
    assert name == "ranks" or all(method in tips for method in HOSTILE)
    figure = draw_chart(chart)
    figure.savefig(BytesIO(), format="png")
    drawn = " ".join(text.get_text() for text in figure.findobj(Text)).replace(r"\$", "$")
    assert all(method in drawn for method in HOSTILE)


def test_more_methods_than_colours_are_told_apart_by_dashes_and_markers():
    names = [f"method {i}" for i in range(25)]
    panel = Panel("", "", "", tuple(Series(name, (0.0,), (0.0,)) for name in names))
    assert len(set(strokes(Chart("", (panel,))).values())) == 25


def test_names_that_do_not_exist_are_refused():
    with pytest.raises(InvalidParameterError, match="no figure 'pie'; it must be one of scores"):
        FIGURES.build("pie", ablations(), PLAIN)
    with pytest.raises(InvalidParameterError, match="figures they suit: sensitivity_surface"):
        FIGURES.build("convergence", surface(), PLAIN)
    with pytest.raises(InvalidParameterError, match="has no panels"):
        draw_chart(Chart("empty", ()))
