# # Choosing parameters by few labels
#
# Compare parameter values by the labels that were given, and by no others. `LabelSearchCV` holds
# them out fold by fold, and keeps the estimator as given unless another is clearly better.

import matplotlib.pyplot as plt

from viewmend import LabelSearchCV, MendClassifier
from viewmend.datasets import hide, load_uci_digits
from viewmend.plot import plot_sensitivity

digits = load_uci_digits()
views = [view[::5] for view in digits.views]
task = hide(views, digits.y[::5], missing_rate=0.6, label_rate=0.1, random_state=0)

# %%
# An estimator whose labels hardly travel, without its regressions, and a grid that could mend it.

poor = MendClassifier(spreading=0.1, n_rounds=0)
grid = {"spreading": [0.5, 0.9, 0.99], "homophily_power": [0.0, 2.0]}
search = LabelSearchCV(poor, grid).fit(task.data, task.y)
print(search.best_params_)
print(f"{search.best_score_:.1%} of the held-out labels were found")

# %%
# All points that were tried; those that fell behind in the first fold left the race.

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
plot_sensitivity(search.cv_results_, ax=axes)
print(f"{len(search.cv_results_['params'])} points, {max(search.cv_results_['n_folds'])} folds")

# %%
# Was it worth it? The true classes, which the search has not seen, tell.

before = poor.fit(task.data, task.y).transduction_
accuracies = [
    (found == task.y_true)[task.unlabelled].mean() for found in (before, search.transduction_)
]
print(f"{accuracies[0]:.1%} as given, {accuracies[1]:.1%} as chosen")
assert accuracies[1] > accuracies[0]
