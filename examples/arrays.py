# # A list of arrays, NaN where a view is missing
#
# The shortest way to begin: one array per view, and a row of NaN where a sample lacks the view.
# Four hundred handwritten digits have three views, and half of the samples lack each view. One
# sample in ten has a label.

import numpy as np

from viewmend import MendClassifier
from viewmend.baselines import UnionGraphClassifier
from viewmend.datasets import hide, load_uci_digits

digits = load_uci_digits()
views = [view[::5] for view in digits.views]
task = hide(views, digits.y[::5], missing_rate=0.5, label_rate=0.1, random_state=0)

# %%
# `hide` removed views and labels, and kept the true labels in `y_true`. The rest is what a user
# has: one array per view with a row for every sample, and labels that are -1 where there is none.

X, y = list(task.data.views), task.y
for name, view in zip(digits.names, X, strict=True):
    missing = np.isnan(view).all(axis=1).mean()
    print(f"{name}: {view.shape[0]} rows, {view.shape[1]} columns, {missing:.0%} missing")
print(f"{(y != -1).sum()} labels")

# %%
# `fit` learns from labelled and unlabelled samples together. `transduction_` has the class of
# every sample. `y_true` is used only afterwards, to measure the accuracy.

model = MendClassifier().fit(X, y)
accuracy = (model.transduction_ == task.y_true)[task.unlabelled].mean()
print(f"{accuracy:.1%} of the unlabelled samples are right")

# %%
# A strong baseline: labels spread over the sum of the neighbour graphs of the views.

baseline = UnionGraphClassifier().fit(X, y)
baseline_accuracy = (baseline.transduction_ == task.y_true)[task.unlabelled].mean()
print(f"union of neighbour graphs: {baseline_accuracy:.1%}")
assert accuracy > baseline_accuracy

# %%
# New samples may come with any of the views; `None` stands for a view that all of them miss.

new = [digits.views[0][1::100], None, digits.views[2][1::100]]
found = model.predict(new)
print(f"{(found == digits.y[1::100]).sum()} of {len(found)} new digits are right")
assert (found == digits.y[1::100]).mean() > 0.7
