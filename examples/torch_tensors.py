# # Tensors of PyTorch
#
# Fit on tensors on the device where they are, such as a GPU. Embeddings from networks are tensors;
# both classifiers accept them, and fitted attributes are NumPy arrays in any case.

import numpy as np
import torch

from viewmend import AGFTIClassifier, MendClassifier
from viewmend.datasets import hide, make_multiview_blobs

blobs = make_multiview_blobs(200, n_views=2, n_features=(6, 9), random_state=8)
task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.1, random_state=8)

# %%
# Rows of NaN are missing views, as everywhere. `device=None`, the default, uses the device of the
# tensors.

tensors = [torch.from_numpy(view) for view in task.data.views]
model = MendClassifier().fit(tensors, task.y)
print(type(model.label_distributions_).__module__, model.status_, model.n_iter_, "rounds")
accuracy = (model.transduction_ == task.y_true)[task.unlabelled].mean()
print(f"{accuracy:.1%} of the unlabelled samples are right")
assert accuracy > 0.9

# %%
# The same data as NumPy arrays: two implementations of one algorithm, which differ by rounding.


def compare(model):
    arrays = list(task.data.views)
    by_torch, by_numpy = (type(model)(random_state=0).fit(X, task.y) for X in (tensors, arrays))
    difference = np.abs(by_torch.label_distributions_ - by_numpy.label_distributions_).max()
    print(f"{type(model).__name__}: probabilities differ by less than 0.001: {difference < 1e-3}")
    assert difference < 1e-3
    assert np.array_equal(by_torch.transduction_, by_numpy.transduction_)


compare(MendClassifier())
compare(AGFTIClassifier())

# %%
# New samples may be tensors or arrays, whatever the fit was on.

new = [view[:5] for view in tensors]
assert np.allclose(
    model.predict_proba(new), model.predict_proba([t.numpy() for t in new]), atol=1e-3
)
