# # Choosing parameters by few labels
#
# Compare parameter values by the given labels only. `LabelSearchCV` holds them out fold by fold,
# and keeps the given parameters unless others are clearly better.

import matplotlib.pyplot as plt

from viewmend import LabelSearchCV, MendClassifier
from viewmend.datasets import hide, load_uci_digits
from viewmend.plot import plot_sensitivity

digits = load_uci_digits()
views = [view[::5] for view in digits.views]
task = hide(views, digits.y[::5], missing_rate=0.6, label_rate=0.1, random_state=0)

# %%
# An estimator whose labels hardly spread, without regressions, and a grid that could improve it.

poor = MendClassifier(spreading=0.1, n_rounds=0)
grid = {"spreading": [0.5, 0.9, 0.99], "homophily_power": [0.0, 2.0]}
search = LabelSearchCV(poor, grid).fit(task.data, task.y)
print(search.best_params_)
print(f"{search.best_score_:.1%} of the held-out labels were predicted correctly")

# %%
# All settings that were tried. After each fold, only the best third of them continued.

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
plot_sensitivity(search.cv_results_, ax=axes)
print(f"{len(search.cv_results_['params'])} points, {max(search.cv_results_['n_folds'])} folds")

# %%
# Did it help? We compare with the true classes, which the search has not seen.

before = poor.fit(task.data, task.y).transduction_
accuracies = [
    (found == task.y_true)[task.unlabelled].mean() for found in (before, search.transduction_)
]
print(f"{accuracies[0]:.1%} as given, {accuracies[1]:.1%} as chosen")
assert accuracies[1] > accuracies[0]
