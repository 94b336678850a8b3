"""What a model must know of the data it was fitted on, in a JSON file beside it.

The model itself holds numbers only. Names of columns, the values for empty cells and which samples
were labelled are kept apart, so that a model can be handed on without them; it then takes columns
as they come, and cannot tell the samples of its fit from others.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from viewmend.core.common.content_order import sample_hashes
from viewmend.data import MultiViewData, ViewTables
from viewmend.storage.atomic import replacing
from viewmend.storage.errors import ModelFileError

FORMAT = "viewmend origin 1"


@dataclass(frozen=True)
class Origin:
    """The data of a fit, as far as later commands need it.

    ``id_column`` is None where rows were just counted. Columns, and values for empty cells, are
    given by view. Of every sample, in the order of the fit, there is a hash of what all views hold
    of it, its identifier, and whether the model was given its label.
    """

    id_column: str | None
    columns: dict[str, list[str]]
    fills: dict[str, dict[str, float]]
    samples: list[str]
    ids: list[str]
    labelled: list[bool]

    def __post_init__(self) -> None:
        per_sample = {len(self.samples), len(self.ids), len(self.labelled)}
        filled = {name: set(columns) for name, columns in self.columns.items()}
        if len(per_sample) != 1 or filled != {name: set(row) for name, row in self.fills.items()}:
            msg = "the parts of an origin must be of the same samples, views and columns"
            raise ValueError(msg)

    @property
    def labelled_ids(self) -> set[str]:
        """Names of the samples whose labels the model was given; none where rows are counted."""
        if self.id_column is None:
            return set()
        return {name for name, known in zip(self.ids, self.labelled, strict=True) if known}


def origin_path(model: Path) -> Path:
    """Where the origin of a model lies."""
    return model.with_name(model.name + ".json")


def origin_of(
    source: ViewTables,
    aligned: MultiViewData,
    labelled: np.ndarray,
    fills: dict[str, dict[str, float]],
) -> Origin:
    """What to remember of the data of a fit."""
    return Origin(
        id_column=source.id_column,
        columns=source.columns(),
        fills=fills,
        samples=fingerprints(aligned),
        ids=[str(name) for name in aligned.sample_ids],
        labelled=labelled.tolist(),
    )


def fingerprints(aligned: MultiViewData) -> list[str]:
    """Sixteen hexadecimal digits per sample that stand for its contents."""
    hashes = sample_hashes(aligned.views, aligned.observed)
    return [f"{value:016x}" for value in hashes.tolist()]


def write_origin(model: Path, origin: Origin) -> None:
    """Write the origin beside a model."""
    with replacing(origin_path(model)) as file:
        text = json.dumps({"format": FORMAT} | asdict(origin), indent=0, ensure_ascii=False)
        file.write(text.encode())


def read_origin(model: Path) -> Origin | None:
    """The origin of a model, None where it was not handed on."""
    path = origin_path(model)
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found.pop("format") != FORMAT:
            raise ValueError
        return Origin(**found)
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        msg = (
            f"{path} must be what viewmend fit wrote beside the model, but is something else; fit "
            "again, or move it away to use the model without it"
        )
        raise ModelFileError(msg) from error
