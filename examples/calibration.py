# # How sure is it? Calibration and abstention
#
# Compare confidence with accuracy, and withhold classes of low confidence. Probabilities are
# calibrated on the labelled samples, each predicted without its own label.

import matplotlib.pyplot as plt
import numpy as np

from viewmend import MendClassifier
from viewmend.datasets import hide, load_uci_digits
from viewmend.plot import plot_reliability

digits = load_uci_digits(["fou", "zer"])
views = [view[::4] for view in digits.views]
task = hide(views, digits.y[::4], missing_rate=0.5, label_rate=0.2, random_state=0)

# %%
# Three shorter fits, each without a third of the labels, predict the held-out samples. This shows
# how accurate the model is, and how confident it may be.

model = MendClassifier().fit(task.data, task.y)
print(model)
print(model.calibration_)

# %%
# Were the probabilities right? We compare them with the true classes, which no fit has seen: of
# the samples with a confidence of 0.8, about 80 % should be right. With two weak views, the scores
# before calibration are overconfident.

bare = MendClassifier(calibration=None).fit(task.data, task.y)
unlabelled = task.unlabelled
right = (model.transduction_ == task.y_true)[unlabelled]
figure, axes = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
for fitted, ax in zip((bare, model), axes, strict=True):
    plot_reliability(fitted.confidence_[unlabelled], right, ax=ax, n_bins=8)
    ax.set_title(f"{fitted.calibration}: {ax.get_title(loc='left')}", loc="left")

# %%
# Calibration changes no class, only the confidence.

assert np.array_equal(model.transduction_, bare.transduction_)
gaps = [abs(fitted.confidence_[unlabelled].mean() - right.mean()) for fitted in (bare, model)]
print(f"mean confidence is off by {gaps[0]:.2f} and {gaps[1]:.2f}")
assert gaps[1] < gaps[0]

# %%
# `decide` withholds classes. The accuracy of those that remain rises with the threshold.

accuracies = []
for threshold in (0.0, 0.5, 0.8):
    decided = ~model.decide(threshold=threshold).abstained[unlabelled]
    accuracies.append(right[decided].mean())
    print(f"{threshold}: {decided.mean():.0%} decided, {right[decided].mean():.1%} right")
assert accuracies[0] < accuracies[1] < accuracies[2]

# %%
# With which threshold are 85 % of the decided classes right? It is found from the held-out labels,
# with a margin because there are few of them.

threshold = model.calibration_.threshold_for(0.85)
decided = ~model.decide(threshold=threshold).abstained[unlabelled]
print(f"{threshold:.2f}: {decided.mean():.0%} decided, {right[decided].mean():.1%} right")
assert right[decided].mean() > 0.85
