# # A folder of CSV files
#
# Read one table per view, joined by a column of identifiers, and write the classes to a file.
# This is what the command line does, step by step in Python.

import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import viewmend
from viewmend import MendClassifier, inspect_data
from viewmend.data import read_view_tables, read_views, result_frame
from viewmend.datasets import hide, make_multiview_blobs

blobs = make_multiview_blobs(150, n_views=2, n_features=(3, 4), random_state=9)
task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.1, random_state=9)

# %%
# The files: `label` is empty where it is not known. One other cell is empty too.

folder = Path("study")
folder.mkdir()
for name, view, seen in zip(("urine", "serum"), task.data.views, task.data.observed.T, strict=True):
    table = pd.DataFrame(view[seen]).add_prefix(f"{name}_").round(4)
    table.insert(0, "id", [f"s{i}" for i in np.flatnonzero(seen)])
    table["label"] = pd.Series(task.y[seen]).where(task.y[seen] != -1).map({0: "a", 1: "b", 2: "c"})
    table.to_csv(folder / f"{name}.csv", index=False)
gap = pd.read_csv(folder / "serum.csv")
gap.loc[3, "serum_1"] = None
gap.to_csv(folder / "serum.csv", index=False)
print(*(folder / "serum.csv").read_text().splitlines()[:6], sep="\n")

# %%
# Is anything wrong with the data? `viewmend inspect study` shows the same.

views, y, ids = read_view_tables(folder).unmended()
for finding in inspect_data(views, y, ids=ids).findings:
    print(f"{finding.severity}: {finding.subject}: {finding.message}")

# %%
# The tables are joined by `id`. The data contains its labels, so `fit` needs nothing else. It
# fills the empty cell from the other cells of its row, with a warning.

data = read_views(folder)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    model = MendClassifier().fit(data)
print(told[0].message)
answer = result_frame(model, data.ids)
answer.to_csv("classes.csv")
print(answer.head(3).round(3))
truth = np.array(["a", "b", "c"])[[task.y_true[int(name[1:])] for name in data.ids]]
accuracy = (answer["class"].astype(str) == truth).mean()
assert accuracy > 0.9

# %%
# A saved model is a file that contains no code. The loaded model makes the same predictions.

viewmend.save(model, "model.vm")
again = viewmend.load("model.vm")
whole = data[data.sample_ids != "s4"]  # the one with the empty cell
assert np.array_equal(again.predict_proba(whole), model.predict_proba(whole))
print(f"{accuracy:.1%} right")
