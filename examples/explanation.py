# # Why this class? Explanations
#
# The class of a sample comes from labels that reach it along the edges of its views, and from
# regressions on its views. `explain` shows the share of each.

import matplotlib.pyplot as plt
import numpy as np

from viewmend import MendClassifier
from viewmend.datasets import hide, load_uci_digits
from viewmend.plot import PALETTE, plot_style

digits = load_uci_digits()
views = [view[::5] for view in digits.views]
task = hide(
    views,
    digits.y[::5],
    missing_rate=0.5,
    label_rate=0.1,
    random_state=0,
    view_names=("Fourier", "profiles", "Karhunen-Loève"),
)
model = MendClassifier().fit(task.data, task.y)

# %%
# We look at the samples with the lowest confidence among those with several views.

rows = np.flatnonzero(task.unlabelled & (task.data.observed.sum(axis=1) > 1))
doubtful = rows[np.argsort(model.confidence_[rows])[:2]]
explanation = model.explain(doubtful)
print(explanation.summary())

# %%
# Views that a sample lacks have no share in its edges. The shares of the supporting labels add up
# to the scores of the graph for each class.

seen = task.data.observed[doubtful]
assert not explanation.view_shares[~seen].any()
for c, label in enumerate(model.classes_):
    of_class = explanation.supporter_labels == label
    total = explanation.support[:, of_class].sum(axis=1)
    assert np.allclose(total, explanation.graph_shares[:, c])

# %%
# The reasons in a picture: how much each adds to the log odds against the second most probable
# class. The sum is exact.

with plot_style():
    figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
    height = 0.8 / len(doubtful)
    for i, odds in enumerate(explanation.log_odds):
        title = f"sample {doubtful[i]}: {explanation.labels[i]} over {explanation.rivals[i]}"
        places = np.arange(len(odds)) + i * height
        axes.barh(places, odds, height, color=PALETTE[i], label=title)
    axes.set_yticks(np.arange(len(odds)) + height / 2, explanation.reasons)
    axes.invert_yaxis()
    axes.axvline(0, color="0.6", linewidth=0.8)
    axes.set_xlabel("adds to the log odds")
    axes.legend(frameon=False)
shares = model.label_distributions_[doubtful]
ranked = np.sort(shares, axis=1)
odds = np.log(ranked[:, -1] / ranked[:, -2])
assert np.allclose(explanation.log_odds.sum(axis=1), odds, atol=1e-3)

# %%
# New samples are explained in the same way, as `predict` treats them. This one has a single view.

fourier = digits.views[0][1::5]
print(model.explain_new([fourier[:1], None, None]).summary())

# %%
# Which columns of a view does its regression use? Values are swapped between samples, one column
# at a time. For each class and column, one number says how much of the scores is lost, and another
# whether larger values raise the score of the class.

columns = model.explain_view("Fourier")
print(columns.summary(most=5))
with plot_style():
    figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
    columns.plot(label=0, most=8, ax=axes)
    axes.set_title("Fourier coefficients that distinguish 0 from other digits")

# %%
# These columns do matter: a classifier on the eight most important ones is far better than one on
# the eight least important ones.

best = columns.ranking()
accuracy = {}
for name, some in {"most": best[:8], "least": best[-8:]}.items():
    few = MendClassifier(calibration=None).fit(views[0][task.order][:, some], task.y)
    accuracy[name] = (few.transduction_ == task.y_true)[task.unlabelled].mean()
    print(f"the eight {name} important columns: {accuracy[name]:.0%}")
assert accuracy["most"] > accuracy["least"] + 0.2
