# # Tutorial: cell types from three omics layers
#
# A multi-omics study from start to end: read a MuData, inspect it, fit, doubt, label a few more
# cells, and write the cell types back to `obs`. Four donors were measured with three assays, so no
# cell has all layers, and an expert has named the type of one cell in fourteen. The data is
# generated here, so that the page needs no download; with your own file, begin at "Read and
# inspect".
#
# You need `pip install '.[omics,plot]'` in the folder of the source.

# %%
# ## The data
#
# The data has blood cells of six types. In each layer a type has markers, which are 4.5 times as
# active as the other columns. A layer is a table of counts: RNA by gene, protein by antibody, ATAC
# by peak.

import anndata as ad
import matplotlib.pyplot as plt
import mudata as md
import numpy as np
import pandas as pd

from viewmend import MendClassifier, inspect_data
from viewmend.data import from_mudata, write_back

md.set_options(pull_on_update=False)  # as MuData will do from version 0.4

MARKERS = {
    "CD4 T cell": ("CD3D CD3E IL7R CCR7 LTB", "CD3 CD4 CD45RA"),
    "CD8 T cell": ("CD3D CD3E CD8A CD8B GZMK", "CD3 CD8 CD45RA"),
    "NK cell": ("GNLY NKG7 KLRD1 GZMB PRF1", "CD56 CD16 CD45RA"),
    "B cell": ("MS4A1 CD79A CD79B CD19 BANK1", "CD19 CD20 HLA-DR"),
    "monocyte": ("LYZ CD14 S100A8 S100A9 CST3", "CD14 CD11c HLA-DR"),
    "dendritic cell": ("FCER1A CLEC10A CD1C HLA-DQA1 CST3", "CD1c CD11c HLA-DR"),
}
TYPES = np.array(list(MARKERS))
SHARES = [0.38, 0.2, 0.13, 0.14, 0.11, 0.04]
LAYERS_OF_DONOR = {
    "donor A": ["rna", "protein"],
    "donor B": ["rna", "protein"],
    "donor C": ["rna", "atac"],
    "donor D": ["protein", "atac"],
}


def draw_counts(names, markers, types, mean, rng):
    """Counts around a mean, 4.5 times as many for the markers of the type of a cell."""
    rates = np.array([[4.5 if name in markers[kind] else 1 for name in names] for kind in TYPES])
    depth = rng.lognormal(sigma=0.4, size=(types.size, 1))
    return rng.poisson(mean * depth * rates[types]).astype(float)


rng = np.random.default_rng(0)
types = rng.choice(TYPES.size, size=700, p=SHARES)
cells = np.array([f"cell{i:03d}" for i in range(700)])
donors = rng.choice(list(LAYERS_OF_DONOR), size=700)

genes = {kind: rna.split() for kind, (rna, _) in MARKERS.items()}
antibodies = {
    kind: [f"anti-{one}" for one in protein.split()] for kind, (_, protein) in MARKERS.items()
}
peaks = {kind: [f"peak{15 * k + i}" for i in range(15)] for k, kind in enumerate(TYPES)}
columns = {
    "rna": sorted({gene for few in genes.values() for gene in few})
    + [f"gene{i}" for i in range(250)],
    "protein": [*sorted({one for few in antibodies.values() for one in few}), "control"],
    "atac": [f"peak{i}" for i in range(300)],
}
means = {"rna": 0.25, "protein": 2.0, "atac": 0.06}
counts = {
    layer: draw_counts(names, markers, types, means[layer], rng)
    for (layer, names), markers in zip(columns.items(), (genes, antibodies, peaks), strict=True)
}

# %%
# The assay determines which layers a cell has, and one cell in ten failed a quality check. An
# expert labelled fifty cells. Six of these labels are wrong: CD4 and CD8 T cells were mixed up.

measured = pd.DataFrame({layer: [layer in LAYERS_OF_DONOR[d] for d in donors] for layer in columns})
failed = rng.random(700) < 0.1
for i in np.flatnonzero(failed):
    measured.loc[i, LAYERS_OF_DONOR[donors[i]][0]] = False

named = rng.choice(700, size=50, replace=False)
expert = pd.Series(TYPES[types[named]], index=cells[named])
mixed_up = expert.index[expert == "CD4 T cell"][:6]
expert[mixed_up] = "CD8 T cell"

layers = {
    layer: ad.AnnData(
        counts[layer][measured[layer]],
        obs=pd.DataFrame(index=cells[measured[layer]]),
        var=pd.DataFrame(index=columns[layer]),
    )
    for layer in columns
}
study = md.MuData(layers)
study.obs["donor"] = pd.Series(donors, index=cells)[study.obs_names]
study.obs["expert"] = expert.reindex(study.obs_names).astype("category")
study.write("blood.h5mu")

# %%
# ## Read and inspect
#
# From here on, do the same with your own file. Counts are normalised per cell and log-transformed,
# as usual. Every modality is a view, and a cell lacks the views of the modalities that it is not
# in.

study = md.read_h5mu("blood.h5mu")
for layer in study.mod.values():
    totals = layer.X.sum(axis=1, keepdims=True)
    layer.X = np.log1p(layer.X / totals * np.median(totals))

data = from_mudata(study, labels="expert")
print(data)

# %%
# `inspect_data` shows which cells have which views, how many labels each class has, and what may
# harm a fit. Read the findings first.

inspection = inspect_data(data)
for pattern in inspection.patterns:
    print(f"{pattern.n_samples} cells with {' and '.join(pattern.views)}")
print(inspection.class_counts)
for finding in inspection.findings:
    print(f"{finding.severity}: {finding.subject}: {finding.message}")

# %%
# ## Fit
#
# The fit needs no imputation and no tuning. The model estimates its own accuracy from held-out
# labels.

model = MendClassifier().fit(data)
print(model)

# %%
# ## Doubt
#
# Which of the expert's labels does the rest of the data contradict? Labels that were mixed up
# should be among the first. They are also a reason why the estimate above is low: if a wrong label
# is held out, it counts as an error of the model.

suspects = model.suspect_labels()
print(suspects.summary())
to_check = suspects.samples[:8]
found = set(data.ids[to_check]) & set(mixed_up)
print(f"{len(found)} of {len(mixed_up)} wrong labels are among the first {len(to_check)} suspects")

# %%
# The expert looks at these eight cells again and corrects the wrong labels.

truth = pd.Series(TYPES[types], index=cells)[list(data.ids)].to_numpy()
labels = np.array(study.obs["expert"].astype(object))
labels[to_check] = truth[to_check]
corrected = MendClassifier().fit(data, labels)

# %%
# ## Which cells to label next
#
# The model names twenty cells whose labels would help most, with a reason for each. The expert
# labels them, and the model is fitted again.

suggested = corrected.suggest_labels(20)
print("\n".join(suggested.summary().splitlines()[:5]))
labels[suggested.samples] = truth[suggested.samples]
final = MendClassifier().fit(data, labels)

# %%
# Here the true types are known, so we can compare the three models on cells that had no label in
# any of them. In a real study, use `estimated_accuracy_` instead.

hidden = np.array([label is None or label != label for label in labels])
for name, one in [("first", model), ("corrected", corrected), ("twenty more labels", final)]:
    accuracy = (one.transduction_ == truth)[hidden].mean()
    print(f"{name}: {accuracy:.1%} of {hidden.sum()} cells right")

# %%
# ## How far to trust it
#
# `decide` withholds the type of cells with low confidence. A confidence is useful if cells with
# high confidence are right more often. This is so here, and cells with one layer have lower
# confidence.

decision = final.decide(threshold=0.8)
sure = ~decision.abstained
right = final.transduction_ == truth
print(f"decided: {sure[hidden].mean():.1%}, right of these: {right[hidden & sure].mean():.1%}")

n_layers = data.observed.sum(axis=1)
fig, (left, right_panel) = plt.subplots(1, 2, figsize=(8.5, 3.2), layout="constrained")
left.hist(
    [final.confidence_[hidden & (n_layers == n)] for n in (1, 2)],
    bins=np.linspace(0.3, 1, 15),
    density=True,
    label=["one layer", "two layers"],
)
left.set(xlabel="confidence", ylabel="density of the cells without a label")
left.legend()
shares = pd.crosstab(truth[hidden], final.transduction_[hidden], normalize="index")
shares = shares.reindex(index=TYPES, columns=TYPES, fill_value=0)
picture = right_panel.imshow(shares, cmap="Blues", vmin=0, vmax=1)
right_panel.set_xticks(range(6), TYPES, rotation=40, ha="right")
right_panel.set_yticks(range(6), TYPES)
right_panel.set(xlabel="predicted", ylabel="true")
fig.colorbar(picture, label="share of the true type")

# %%
# ## Back to `obs`
#
# Types, confidences and the probabilities of all types are written into the MuData, which you save
# as usual. Other tools find them in `obs["cell_type"]` and `obsm["cell_type_probabilities"]`.

write_back(study, final, key="cell_type")
study.write("blood_with_types.h5mu")
print(study.obs[["donor", "expert", "cell_type", "cell_type_confidence"]].head())

assert len(found) >= 3
assert right[hidden].mean() > 0.85

# %%
# ## Were the labels a fair sample?
#
# Two ways of drawing labels at random are easily confused. **At random within classes**: the same
# share of every class is labelled, for example one in fourteen T cells and one in fourteen
# dendritic cells. This is only possible if the types are known beforehand; most benchmarks do it.
# **Without regard to class**: fifty cells are drawn from all, and the number of labels of a rare
# type depends on chance; it may be zero. This is the usual case in a study.

within = [round(50 * np.mean(truth == kind)) for kind in TYPES]
drawn = [np.unique(rng.choice(truth, 50), return_counts=True) for _ in range(5)]
table = pd.DataFrame(
    {f"draw {d}": dict(zip(*one, strict=True)) for d, one in enumerate(drawn, start=1)}
).reindex(TYPES, fill_value=0)
table.insert(0, "within classes", within)
print(table.fillna(0).astype(int))

# %%
# The difference matters in two ways. Accuracies measured with labels drawn within classes are a
# little higher than in a study. And `class_prior="labeled"` uses the class shares of the labels,
# which is only right if these are the class shares of the data; the default, `"auto"`, also uses
# the data.
