# # Named views, and a mask in place of NaN
#
# Give names to views with a dict, and say with a mask which rows count. You need a mask if the
# rows of missing samples contain values, such as zeros or old values.

import numpy as np

from viewmend import MendClassifier
from viewmend.datasets import hide, make_multiview_blobs

blobs = make_multiview_blobs(200, n_views=2, n_classes=4, n_features=(6, 9), random_state=1)
task = hide(blobs.views, blobs.y, missing_rate=0.4, label_rate=0.1, random_state=1)

# %%
# The mask has one column per view and is False where a sample lacks the view. The values of these
# rows are ignored.

mask = task.data.observed
rng = np.random.default_rng(0)
X = {
    name: np.where(seen[:, None], view, rng.normal(size=view.shape))
    for name, view, seen in zip(("image", "text"), task.data.views, mask.T, strict=True)
}
model = MendClassifier().fit(X, task.y, mask=mask)
print(dict(zip(model.view_names_, model.view_weights_.round(2).tolist(), strict=True)))

# %%
# The result is the same as with rows of NaN, to the last bit.

with_nan = MendClassifier().fit(list(task.data.views), task.y)
assert np.array_equal(model.label_distributions_, with_nan.label_distributions_)
print("mask and NaN rows: the same model")

# %%
# For prediction, leave missing views out of the dict. The others are found by name.

fresh = make_multiview_blobs(200, n_views=2, n_classes=4, n_features=(6, 9), random_state=1)
found = model.predict({"text": fresh.views[1]})
print(f"by the text alone {(found == fresh.y).mean():.1%} are right")
assert (found == fresh.y).mean() > 0.8
