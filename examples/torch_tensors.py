# # Tensors of PyTorch
#
# Fit on tensors on the device where they are, such as a GPU. Embeddings from networks are tensors;
# `AGFTIClassifier` accepts them, and fitted attributes are NumPy arrays in any case.

import numpy as np
import torch

from viewmend import AGFTIClassifier
from viewmend.datasets import hide, make_multiview_blobs

blobs = make_multiview_blobs(200, n_views=2, n_features=(6, 9), random_state=8)
task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.1, random_state=8)

# %%
# Rows of NaN are missing views, as everywhere. `device=None`, the default, uses the device of the
# tensors.

tensors = [torch.from_numpy(view) for view in task.data.views]
model = AGFTIClassifier(random_state=0).fit(tensors, task.y)
print(type(model.label_distributions_).__module__, model.status_, model.n_iter_, "rounds")

# %%
# The same data as NumPy arrays: two implementations of one algorithm.

plain = AGFTIClassifier(random_state=0).fit(list(task.data.views), task.y)
difference = np.abs(model.fused_graph_ - plain.fused_graph_).max()
print(f"entries of the fused graph differ by less than 1e-4: {difference < 1e-4}")
assert difference < 1e-4
assert np.array_equal(model.transduction_, plain.transduction_)
accuracy = (model.transduction_ == task.y_true)[task.unlabelled].mean()
print(f"{accuracy:.1%} of the unlabelled samples are right")
assert accuracy > 0.9
