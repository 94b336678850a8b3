# # Sparse matrices: counts of words
#
# Classify documents in two languages from sparse counts of words; most are in one language only.
# Sparse views of up to 4096 columns are converted to dense arrays inside `fit`. Wider ones are
# replaced by their 256 leading components, with a warning.

import numpy as np
import scipy.sparse as sp

from viewmend import MendClassifier
from viewmend.data import from_arrays

# %%
# The documents have three topics, each with its own frequent words in both languages.

rng = np.random.default_rng(7)
topics = rng.integers(3, size=180)


def count_words(n_words):
    favoured = rng.gamma(0.3, size=(3, n_words))
    return sp.csr_array(rng.poisson(20 * favoured[topics] / favoured.sum(axis=1)[topics, None]))


words = {"english": count_words(60), "french": count_words(80)}
for name, counts in words.items():
    print(f"{name}: {counts.shape[1]} words, {counts.nnz / np.prod(counts.shape):.0%} non-zero")

# %%
# Each language has its own documents; `ids` says which row is which document.

numbers = np.arange(180)
rows = {"english": numbers[numbers % 3 != 0], "french": numbers[numbers % 3 != 1]}
labels = {int(i): f"topic {topics[i]}" for i in range(0, 180, 10)}
data = from_arrays({name: words[name][rows[name]] for name in words}, labels=labels, ids=rows)
print(data)

# %%

model = MendClassifier().fit(data)
truth = np.array([f"topic {topics[i]}" for i in data.ids])
unlabelled = np.array([label is None for label in data.y])
accuracy = (model.transduction_ == truth)[unlabelled].mean()
print(f"{accuracy:.1%} of the unlabelled documents are right")
assert accuracy > 0.8

# %%
# Sparse views with the same rows can be passed to `fit` directly. The result is the same as with
# dense views.

dense = MendClassifier().fit([counts.toarray() for counts in words.values()], topics)
sparse = MendClassifier().fit(list(words.values()), topics)
assert np.array_equal(dense.label_distributions_, sparse.label_distributions_)
