# # MuData: one modality per view
#
# Fit on a MuData whose modalities have different cells. Each modality is a view, and a cell lacks
# the views of the modalities that it is not in.

import anndata as ad
import mudata as md
import numpy as np
import pandas as pd

from viewmend import MendClassifier
from viewmend.data import from_mudata, write_back
from viewmend.datasets import hide, make_multiview_blobs

blobs = make_multiview_blobs(160, n_views=2, n_features=(10, 6), random_state=6)
task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.1, random_state=6)
kinds = np.array(["B cell", "NK cell", "T cell"])
names = np.array([f"cell{i}" for i in range(160)])

# %%
# Each modality has its own cells. The types of a few cells are known.

modalities = {
    name: ad.AnnData(
        view[seen],
        obs=pd.DataFrame(index=names[seen]),
        var=pd.DataFrame(index=[f"{name}_{c}" for c in range(view.shape[1])]),
    )
    for name, view, seen in zip(
        ("rna", "protein"), task.data.views, task.data.observed.T, strict=True
    )
}
with md.set_options(pull_on_update=False):
    cells = md.MuData(modalities)
known = pd.Series(kinds[task.y], index=names)[task.y != -1]
cells.obs["cell_type"] = known.reindex(cells.obs_names).astype("category")
print({name: modality.n_obs for name, modality in cells.mod.items()}, cells.n_obs)

# %%

data = from_mudata(cells, labels="cell_type")
print(data)
model = MendClassifier().fit(data)
write_back(cells, model)
truth = pd.Series(kinds[task.y_true], index=names)[cells.obs_names]
accuracy = (cells.obs["viewmend"].astype(str) == truth).mean()
print(f"{accuracy:.1%} are right")
assert accuracy > 0.9

# %%
# The order of the cells is that of the MuData. It makes no difference: arrays in another order
# give every cell the same probabilities.

plain = MendClassifier().fit(list(task.data.views), task.y)
shares = pd.DataFrame(plain.label_distributions_, index=names).loc[cells.obs_names]
assert np.array_equal(shares.to_numpy(), model.label_distributions_)
