# # How sure is it? Calibration and abstention
#
# Probabilities are calibrated on the labelled samples, each judged without its own label. A
# threshold then withholds the classes that are not sure enough.

import matplotlib.pyplot as plt
import numpy as np

from viewmend import MendClassifier
from viewmend.datasets import hide, load_uci_digits
from viewmend.plot import plot_reliability

digits = load_uci_digits(["fou", "zer"])
views = [view[::4] for view in digits.views]
task = hide(views, digits.y[::4], missing_rate=0.5, label_rate=0.2, random_state=1)

# %%
# "leave_one_out", the default, takes the label of a sample away from the finished graph. That costs
# little, but the regressions have learned from that label and its neighbours. "cross_fit" fits five
# times more, each time without a fifth of the labels.

quick = MendClassifier().fit(task.data, task.y)
careful = MendClassifier(calibration="cross_fit").fit(task.data, task.y)
print(quick.calibration_)
print(careful.calibration_)

# %%
# Were the probabilities right? The true classes, which no fit has seen, tell: of the samples with
# a confidence of 0.8, about 80 % should be right. With two weak views the default is too sure.

unlabelled = task.unlabelled
right = (quick.transduction_ == task.y_true)[unlabelled]
figure, axes = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
for model, ax in zip((quick, careful), axes, strict=True):
    plot_reliability(model.confidence_[unlabelled], right, ax=ax, n_bins=8)
    ax.set_title(f"{model.calibration}: {ax.get_title(loc='left')}", loc="left")

# %%
# Calibration changes no class, only how sure the model says it is.

assert np.array_equal(careful.transduction_, quick.transduction_)
gaps = [abs(model.confidence_[unlabelled].mean() - right.mean()) for model in (quick, careful)]
print(f"mean confidence is off by {gaps[0]:.2f} and {gaps[1]:.2f}")
assert gaps[1] < gaps[0]

# %%
# `decide` withholds classes. The accuracy of those that remain rises with the threshold.

accuracies = []
for threshold in (0.0, 0.5, 0.8):
    decided = ~careful.decide(threshold=threshold).abstained[unlabelled]
    accuracies.append(right[decided].mean())
    print(f"{threshold}: {decided.mean():.0%} decided, {right[decided].mean():.1%} right")
assert accuracies[0] < accuracies[1] < accuracies[2]

# %%
# What threshold makes the decided classes 85 % right? The held-out labels answer, with a margin
# for their small number.

threshold = careful.calibration_.threshold_for(0.85)
decided = ~careful.decide(threshold=threshold).abstained[unlabelled]
print(f"{threshold:.2f}: {decided.mean():.0%} decided, {right[decided].mean():.1%} right")
assert right[decided].mean() > 0.85
