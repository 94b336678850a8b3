# # Why this class? Explanations
#
# A class comes from labels that reach the sample through edges of its views, and from what the
# regressions on its views say. `explain` gives the share of each.

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
# The samples that the model is least sure of are those to look at; here, of those with several
# views.

rows = np.flatnonzero(task.unlabelled & (task.data.observed.sum(axis=1) > 1))
doubtful = rows[np.argsort(model.confidence_[rows])[:2]]
explanation = model.explain(doubtful)
print(explanation.summary())

# %%
# Views that a sample misses have no share in its edges. The shares of the supporting labels add
# up to what the graph says of each class.

seen = task.data.observed[doubtful]
assert not explanation.view_shares[~seen].any()
for c, label in enumerate(model.classes_):
    of_class = explanation.supporter_labels == label
    total = explanation.support[:, of_class].sum(axis=1)
    assert np.allclose(total, explanation.graph_shares[:, c])

# %%
# The reasons in a picture: what each adds to the logarithm of the odds against the next best
# class. They add up exactly.

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
# New samples are explained by the same reasons, as `predict` sees them. Here one that has a single
# view.

fourier = digits.views[0][1::5]
print(model.explain_new([fourier[:1], None, None]).summary())

# %%
# Which columns of a view does its regression listen to? Values are swapped between samples, column
# by column. One number per class and column says what its scores lose, and whether larger values
# raise the score of the class.

columns = model.explain_view("Fourier")
print(columns.summary(most=5))
with plot_style():
    figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
    columns.plot(label=0, most=8, ax=axes)
    axes.set_title("Fourier coefficients that tell zeros from others")

# %%
# These are the columns: a classifier on the eight most important ones of them is far better than
# one on the eight least important.

best = columns.ranking()
accuracy = {}
for name, some in {"most": best[:8], "least": best[-8:]}.items():
    few = MendClassifier(calibration=None).fit(views[0][task.order][:, some], task.y)
    accuracy[name] = (few.transduction_ == task.y_true)[task.unlabelled].mean()
    print(f"the eight {name} important columns: {accuracy[name]:.0%}")
assert accuracy["most"] > accuracy["least"] + 0.2
