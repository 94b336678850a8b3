# # AnnData: representations in `obsm`
#
# Fit on entries of `obsm` and write the cell types back to `obs`. Cells have an RNA and a protein
# measurement, and some cells lack one of them. Each entry is a view, with rows of NaN where a cell
# was not measured.

import anndata as ad
import numpy as np
import pandas as pd

from viewmend import MendClassifier
from viewmend.data import from_anndata, write_back
from viewmend.datasets import hide, make_multiview_blobs

blobs = make_multiview_blobs(160, n_views=2, n_features=(10, 6), random_state=5)
task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.1, random_state=5)
kinds = np.array(["B cell", "NK cell", "T cell"])

# %%
# If the type of a cell is not known, its label is "Unknown", as in annotation tools.

obs = pd.DataFrame(
    {"cell_type": pd.Categorical(np.where(task.y == -1, "Unknown", kinds[task.y]))},
    index=[f"cell{i}" for i in range(160)],
)
cells = ad.AnnData(obs=obs)
cells.obsm["X_rna"], cells.obsm["X_protein"] = task.data.views
print(cells)

# %%

data = from_anndata(
    cells, {"rna": "X_rna", "protein": "X_protein"}, labels="cell_type", unlabelled="Unknown"
)
model = MendClassifier().fit(data)

# %%
# `write_back` puts classes, confidences and probabilities where other tools look for them. The
# object can be saved as .h5ad.

write_back(cells, model, key="mended")
print(cells.obs.head(4))
accuracy = (cells.obs["mended"].astype(str).to_numpy() == kinds[task.y_true]).mean()
print(f"{accuracy:.1%} are right")
assert accuracy > 0.9
assert np.array_equal(cells.obsm["mended_probabilities"], model.label_distributions_)
