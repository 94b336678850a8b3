# # Which samples to label? A simulated labelling loop
#
# A model needs fewer labels if it suggests which samples to label. Here the true classes are
# known, and we reveal those of one suggested batch at a time, as a person would who labels it.

import matplotlib.pyplot as plt
import numpy as np

from viewmend import MendClassifier
from viewmend.datasets import hide, load_uci_digits
from viewmend.plot import PALETTE, plot_style

digits = load_uci_digits()
views = [view[::4] for view in digits.views]
task = hide(views, digits.y[::4], missing_rate=0.5, label_rate=0.05, random_state=0)
truth, n_samples = task.y_true, len(task.y)

# %%
# Without any label there is no model yet. The first batch is chosen by the views alone: samples
# that are similar to many others.

first = MendClassifier().suggest_first_labels(task.data, 10)
print(first.summary())
print("classes met:", len(np.unique(truth[first.samples])))

# %%
# After that, the model suggests samples. `samples` are rows of the fit, best first; `reasons` say
# why.

y = np.full(n_samples, -1)
y[first.samples] = truth[first.samples]
model = MendClassifier(calibration=None).fit(task.data, y)
print(model.suggest_labels(5).summary())

# %%
# The loop, once with suggestions and once with samples drawn at random.


def by_suggestion(model, _y, _rng):
    return model.suggest_labels(10).samples


def by_chance(_model, y, rng):
    return rng.choice(np.flatnonzero(y < 0), 10, replace=False)


def labelling_loop(start, choose, most=40):
    rng, y, curve = np.random.default_rng(0), np.full(n_samples, -1), []
    chosen = start
    while True:
        y[chosen] = truth[chosen]
        model = MendClassifier(calibration=None).fit(task.data, y)
        rest = y < 0
        curve.append(((~rest).sum(), (model.transduction_ == truth)[rest].mean()))
        if curve[-1][0] >= most:
            return np.array(curve)
        chosen = choose(model, y, rng)


random_start = np.random.default_rng(1).choice(n_samples, 10, replace=False)
curves = {
    "suggested": labelling_loop(first.samples, by_suggestion),
    "by chance": labelling_loop(random_start, by_chance),
}

# %%
# The learning curves: accuracy on the samples that have no label. Suggestions help most at the
# beginning. Later both are close here, and a single run does not show which is better:
# `docs/results/next_steps.md` has the means of many runs.

with plot_style():
    figure, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
    for color, (name, curve) in zip(PALETTE, curves.items(), strict=False):
        ax.plot(*curve.T, "o-", color=color, label=name)
    ax.set_xlabel("labels")
    ax.set_ylabel("accuracy on the rest")
    ax.legend(frameon=False)

suggested, chance = (curve[:, 1] for curve in curves.values())
print(f"with 20 labels: {suggested[1]:.1%} suggested, {chance[1]:.1%} by chance")
assert suggested.mean() > chance.mean()
assert suggested[1] > chance[1] + 0.1

# %%
# Another way to spend a budget: measure missing views. The gain is the expected increase of the
# probability that the sample is classified correctly.

model = MendClassifier().fit(task.data, task.y)
print(model.suggest_views(20, costs={"view 0": 2.0}).summary())
