# # polars frames
#
# Join polars frames, eager or lazy, by a column of identifiers. polars has no index, so `on` names
# that column. Lazy frames are collected, and frames of pandas and polars may be mixed.

import numpy as np
import pandas as pd
import polars as pl

from viewmend import MendClassifier
from viewmend.data import from_frames, result_frame
from viewmend.datasets import hide, make_multiview_blobs

blobs = make_multiview_blobs(150, n_views=2, n_features=(4, 6), random_state=4)
task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.1, random_state=4)
labels = np.where(task.y == -1, None, np.array(["A", "B", "C"])[task.y])

# %%
# Where a sample has no label, the label is null.

frames = {}
for name, view, seen in zip(("sound", "video"), task.data.views, task.data.observed.T, strict=True):
    columns = {f"{name}_{c}": column for c, column in enumerate(view[seen].T)}
    frames[name] = pl.DataFrame({"clip": np.flatnonzero(seen), **columns})
frames["sound"] = frames["sound"].with_columns(
    pl.Series("genre", labels[task.data.observed[:, 0]].tolist())
)
print(frames["sound"].select("clip", "sound_0", "genre").head(3))

# %%

data = from_frames(
    {"sound": frames["sound"].lazy(), "video": frames["video"]}, labels="genre", on="clip"
)
model = MendClassifier().fit(data)
answer = pl.from_pandas(result_frame(model, data.ids).reset_index(names="clip"))
print(answer.head(3))

# %%
# pandas frames with the same identifiers give the same model.

same = from_frames(
    {
        "sound": pd.DataFrame(frames["sound"].to_dict(as_series=False)),
        "video": pd.DataFrame(frames["video"].to_dict(as_series=False)),
    },
    labels="genre",
    on="clip",
)
again = MendClassifier().fit(same.data, same.y)
assert np.array_equal(model.label_distributions_, again.label_distributions_)
truth = np.array(["A", "B", "C"])[task.y_true[answer["clip"].to_numpy()]]
accuracy = (answer["class"].to_numpy().astype(str) == truth).mean()
print(f"{accuracy:.1%} are right")
assert accuracy > 0.9
