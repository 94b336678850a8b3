# # Long fits: callbacks and checkpoints
#
# Follow a fit, stop it after some time, and resume it from a file. The data is small here; with
# large data, everything works the same way.

import numpy as np
import pandas as pd

from viewmend import AGFTIClassifier
from viewmend.callbacks import Checkpoint, HistoryCSV, TimeLimit
from viewmend.datasets import hide, make_multiview_blobs

blobs = make_multiview_blobs(250, n_views=3, random_state=10)
task = hide(blobs.views, blobs.y, missing_rate=0.4, label_rate=0.1, random_state=10)

# %%
# A callback is called after every round. If it returns a true value, the fit stops, and the model
# can be used.


def stop_after_three(round_, _state):
    return round_.iteration == 3


first = AGFTIClassifier(random_state=0).set_callbacks(
    stop_after_three, Checkpoint("rounds.ckpt"), HistoryCSV("history.csv")
)
first.fit(task.data, task.y)
print(first.status_, "after", first.n_iter_, "rounds")

# %%
# A fit with the same checkpoint continues after the last round in the file.

second = AGFTIClassifier(random_state=0).set_callbacks(
    Checkpoint("rounds.ckpt"), HistoryCSV("history.csv"), TimeLimit(600)
)
second.fit(task.data, task.y)
print(second.status_, "after", second.n_iter_, "rounds")
print(pd.read_csv("history.csv")[["iteration", "change_F", "alpha.0"]].tail(3).round(5))

# %%
# The result is that of a fit without interruption, to the last bit.

whole = AGFTIClassifier(random_state=0).fit(task.data, task.y)
assert first.n_iter_ == 3 < whole.n_iter_ == second.n_iter_
assert np.array_equal(second.label_distributions_, whole.label_distributions_)
print("interrupted and continued: the same model")
