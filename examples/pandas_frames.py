# # pandas frames with other rows in each
#
# Join tables with different samples in different orders by their index. Laboratories often have
# one table per measurement, with the samples that were measured; `from_frames` joins them.

import numpy as np
import pandas as pd

from viewmend import MendClassifier
from viewmend.data import from_frames, result_frame
from viewmend.datasets import hide, make_multiview_blobs

blobs = make_multiview_blobs(150, n_views=2, n_features=(5, 7), random_state=3)
task = hide(blobs.views, blobs.y, missing_rate=0.4, label_rate=0.1, random_state=3)

# %%
# Both tables lack some samples, and the rows of the second are in another order. The labels are a
# column of the first table, empty where they are not known.

names = np.array([f"patient {i:03d}" for i in range(150)])
stages = np.array(["early", "middle", "late"])
blood, scan = (
    pd.DataFrame(view[seen], index=names[seen]).add_prefix(prefix)
    for prefix, view, seen in zip(
        ("blood_", "scan_"), task.data.views, task.data.observed.T, strict=True
    )
)
scan = scan.sample(frac=1, random_state=0)
known = {name: stages[label] for name, label in zip(names, task.y, strict=True) if label != -1}
print(blood.shape, scan.shape, len(known), "labels")
print(blood.iloc[:3, :3].round(2))

# %%
# Every identifier in some table is a sample. It lacks the views in whose tables it does not occur.

data = from_frames({"blood": blood, "scan": scan}, labels=known)
print(data)
model = MendClassifier().fit(data)

# %%
# The result is a frame with the same identifiers.

answer = result_frame(model, data.ids)
print(answer.head(4).round(3))
truth = pd.Series(stages[task.y_true], index=names)
accuracy = (answer["class"].astype(str) == truth[answer.index]).mean()
assert accuracy > 0.9

# %%
# With `like=`, new tables get the columns of the fit, whatever their order. A whole view may be
# missing.

new = from_frames({"scan": scan.iloc[:5, ::-1]}, like=data)
print(result_frame(model, new=new)[["class", "confidence"]].round(3))
assert list(new.ids) == list(scan.index[:5])
