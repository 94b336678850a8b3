# # One stacked array, and a scikit-learn pipeline
#
# Use all views in one array, so that pipelines and searches of scikit-learn work. `view_sizes`
# tells how many of its columns belong to each view.

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

from viewmend import MendClassifier
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.model_selection import LabelledStratifiedKFold

blobs = make_multiview_blobs(200, n_views=2, n_classes=3, n_features=(6, 9), random_state=2)
task = hide(blobs.views, blobs.y, missing_rate=0.4, label_rate=0.15, random_state=2)

# %%
# `stacked` puts the views side by side. A missing view is a block of NaN, which the scaler keeps.

X, y = task.data.stacked(), task.y
pipeline = make_pipeline(RobustScaler(), MendClassifier(n_rounds=2, view_sizes=(6, 9)))
pipeline.fit(X, y)
model = pipeline[-1]
accuracy = (model.transduction_ == task.y_true)[task.unlabelled].mean()
print(f"{X.shape[1]} columns, {accuracy:.1%} of the unlabelled samples are right")
assert accuracy > 0.9

# %%
# In a grid search only labelled samples are held out and scored: the folds of
# `LabelledStratifiedKFold` never test a sample without a label, and `score` leaves them out.

search = GridSearchCV(
    pipeline, {"mendclassifier__spreading": [0.5, 0.99]}, cv=LabelledStratifiedKFold(3)
)
search.fit(X, y)
print(search.best_params_, search.cv_results_["mean_test_score"].round(2))

# %%
# The folds only hold out samples with a label.

for train, test in LabelledStratifiedKFold(3).split(X, y):
    assert np.all(y[test] != -1)
    assert len(train) + len(test) == len(y)
