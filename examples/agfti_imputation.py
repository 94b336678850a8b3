# # What AGF-TI's imputation does
#
# AGF-TI does not fill in columns. Every view has a graph between samples and *anchors*, which are
# a few typical points of that view. A sample that misses the view has no place in its graph; the
# method imputes its row of the graph from the other views.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from viewmend import AGFTIClassifier
from viewmend.datasets import hide, load_uci_digits
from viewmend.plot import anchor_class_shares, embed_rows, plot_graph_embedding, plot_style

digits = load_uci_digits()[::4]
task = hide(digits, missing_rate=0.5, label_rate=0.1, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    model = AGFTIClassifier(max_iter=30, random_state=0).fit(task.data, task.y)
accuracy = (model.transduction_ == task.y_true)[task.unlabelled].mean()
print(f"{accuracy:.1%} of the unlabelled samples are right")

# %%
# We look at the view that misses most samples. Before imputation their rows are uniform. The
# alignment turns the anchors of the view into those of the fused graph; its transpose turns them
# back.

view = int(np.argmin(task.data.observed.sum(axis=0)))
missing = ~task.data.observed[:, view]
imputed = model.view_graphs_[view]
before = np.where(missing[:, None], 1 / imputed.shape[1], imputed)
fused = model.fused_graph_ @ model.anchor_alignments_[view].T
print(f"{missing.sum()} of {len(missing)} samples miss the view {task.data.names[view]!r}")

# %%
# How good are the imputed rows? In each imputed row, we take the class whose anchors have most of
# its weight, and count for how many samples this is the true class.

shares = anchor_class_shares(before, model.transduction_, missing)
judged = missing & task.unlabelled


def leaning_right(rows):
    leaning = model.classes_[np.argmax(rows @ shares, axis=1)]
    return (leaning == task.y_true)[judged].mean()


right = {"imputed": leaning_right(imputed), "fused": leaning_right(fused)}
for name, share in right.items():
    print(f"{name} graph: {share:.0%} lean to their own class")
assert leaning_right(before) < 0.3 < 0.7 < min(right.values())

# %%
# The same in a picture. Corners are classes. An anchor lies between the classes that were
# predicted for its observed samples, and a sample lies at the mean of its anchors. Dots are
# samples with the view. Rings are samples without it, which all share one point before imputation.
# Colours are true classes.

titles = (
    "Before imputation: one point",
    f"Imputed: {right['imputed']:.0%} lean to their class",
    f"Fused graph: {right['fused']:.0%} lean to their class",
)
points = embed_rows(before, imputed, fused, labels=model.transduction_, missing=missing)
with plot_style():
    figure, axes = plt.subplots(1, 3, figsize=(13, 5), layout="constrained")
    for ax, places, title in zip(axes, points, titles, strict=True):
        plot_graph_embedding(places, task.y_true, missing, ax, title)
