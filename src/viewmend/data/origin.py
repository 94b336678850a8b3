"""What a model must know about the files of its fit, to read others in the same way."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from viewmend.core.common.content_order import sample_hashes
from viewmend.data.categories import Categories
from viewmend.data.container import MultiViewData
from viewmend.data.io.loading import ViewTables


@dataclass(frozen=True, eq=False)
class Origin:
    """The data of a fit, as far as later commands need it.

    ``id_column`` is None where rows were just counted. ``columns`` are (n_columns_v,) by view;
    ``categories`` tells by view and column of the files what columns of categories became. Of every
    sample, in the order of the fit, there is a hash of what all views hold of it, ``samples``
    (n_samples,), and its identifier, ``ids`` (n_samples,).
    """

    id_column: str | None
    columns: dict[str, np.ndarray]
    categories: dict[str, dict[str, Categories]]
    samples: np.ndarray
    ids: np.ndarray

    @property
    def column_names(self) -> dict[str, list[str]]:
        """Names of the columns by view."""
        return {name: columns.tolist() for name, columns in self.columns.items()}

    def without_samples(self) -> Origin:
        """The same without identifiers and hashes of the samples."""
        return replace(self, samples=self.samples[:0], ids=self.ids[:0])


def origin_of(source: ViewTables, aligned: MultiViewData) -> Origin:
    """What to remember of the data of a fit."""
    columns = source.columns()
    return Origin(
        id_column=source.id_column,
        columns={name: np.array(names, dtype=np.str_) for name, names in columns.items()},
        categories={
            name: {str(column): found for column, found in learnt.items()}
            for name, learnt in source.categories.items()
        },
        samples=fingerprints(aligned),
        ids=aligned.sample_ids.astype(np.str_),
    )


def fingerprints(aligned: MultiViewData) -> np.ndarray:
    """A number for every sample that stands for its contents, (n_samples,) of uint64."""
    # Of the many bit patterns of NaN every missing cell gets the same.
    views = [np.where(np.isnan(view), np.nan, view) for view in aligned.views]
    return sample_hashes(views, aligned.observed)
