"""``viewmend predict``: the classes of samples by a model from a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from viewmend.cli import options
from viewmend.cli.answers import (
    answer,
    prediction_table,
    read_for,
    set_texts,
    write_sample_table,
)
from viewmend.cli.console import check_files, check_table, refusals, say, short_warnings, write_json
from viewmend.data import MultiViewData
from viewmend.exceptions import InvalidParameterError
from viewmend.persistence import load


def predict(
    model: options.ModelFile,
    data: options.Data,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", dir_okay=False, help="Write the classes to this CSV file."),
    ],
    threshold: Annotated[
        float,
        typer.Option(min=0, max=1, help="Leave the class empty if confidence is below this."),
    ] = 0.0,
    unknown_rate: Annotated[
        float | None,
        typer.Option(
            metavar="RATE",
            help="Mark samples that fit no class in a column unknown, and leave their class "
            "empty. RATE is the share of the samples of known classes that may be marked by "
            "mistake, as in 0.05.",
            show_default="not looked for",
        ),
    ] = None,
    sets: Annotated[
        float | None,
        typer.Option(
            metavar="ALPHA",
            help="Add a column set: the classes that a sample may have, most probable first. Sets "
            "lack the right class for about the share ALPHA of the samples, as in 0.1.",
            show_default="none",
        ),
    ] = None,
    id_column: options.IdColumn = None,
    view: options.Views = None,
    unreadable_as_missing: options.UnreadableAsMissing = False,
    as_json: options.AsJson = False,
) -> None:
    """Predict the class of new samples, which may have any of the views.

    The file has the columns: identifier, class, confidence, and the probability of every class.
    Samples of the fit keep the classes that the fit found.

    `viewmend predict model.vm new_data/ -o classes.csv --threshold 0.8`
    """
    console = Console(stderr=True)
    with refusals(), short_warnings(console) as notes:
        check_table(output, "--output", data)
        check_files({"--output": output}, data, [model])
        known = load(model)
        request = options.request_for(
            id_column, views=view, unreadable_as_missing=unreadable_as_missing
        )
        aligned = read_for(known, data, request)
        answers = answer(known, aligned)
        origin = known.fitted_state_.origin
        id_heading = None if origin is None else origin.id_column
        unsure = answers.frame["confidence"].to_numpy() < threshold
        # A label that was given is certain, however unlikely the model finds it.
        withheld = unsure & ~(answers.given & (answers.fit_rows >= 0))
        asked = _Asked(known, aligned, answers.fit_rows)
        unknown = np.zeros(len(aligned), dtype=bool)
        if unknown_rate is not None:
            unknown = asked.unknown(unknown_rate)
        table = prediction_table(answers.frame, id_column or id_heading, withheld | unknown)
        if unknown_rate is not None:
            table["unknown"] = unknown
        if sets is not None:
            table["set"] = set_texts(asked.sets(sets), answers.frame, known.classes_)
        write_sample_table(table, output)
    summary = {
        "n_samples": len(table),
        "n_of_fit": int((answers.fit_rows >= 0).sum()),
        "n_abstained": int((withheld | unknown).sum()),
        "n_unknown": None if unknown_rate is None else int(unknown.sum()),
        "mean_confidence": float(table["confidence"].mean()),
        "files": {"predictions": str(output)},
        "notes": notes,
    }
    if as_json:
        write_json(summary)
        return
    strange = "" if unknown_rate is None else f", {summary['n_unknown']} of which fit no class"
    say(
        Console(),
        f"{summary['n_samples']} samples, {summary['n_of_fit']} of which were in the fit; "
        f"{summary['n_abstained']} without a class{strange}; mean confidence "
        f"{summary['mean_confidence']:.3f}",
        f"predictions: {output}",
    )


@dataclass(frozen=True, eq=False)
class _Asked:
    """What a model of Mend is asked about some samples.

    ``fit_rows`` (n_samples,) are rows of the fit, -1 for new samples.
    """

    model: Any
    data: MultiViewData
    fit_rows: np.ndarray

    def unknown(self, rate: float) -> np.ndarray:
        """Samples (n_samples,) of bool that fit no class."""
        decide = self._method("decide", "--unknown-rate")
        return self._of_all(lambda *views: decide(*views, threshold=0.0, unknown_rate=rate).unknown)

    def sets(self, alpha: float) -> np.ndarray:
        """Classes (n_samples, n_classes) of bool that the samples may have."""
        predict_set = self._method("predict_set", "--sets")
        return self._of_all(lambda *views: predict_set(*views, alpha=alpha))

    def _method(self, name: str, option: str) -> Callable[..., Any]:
        if not hasattr(self.model, "predict_set"):
            msg = (
                f"{option} needs a model of the method Mend, got {type(self.model).__name__}; "
                "leave it out, or fit again with --method Mend"
            )
            raise InvalidParameterError(msg)
        return getattr(self.model, name)

    def _of_all(self, ask: Callable[..., np.ndarray]) -> np.ndarray:
        """Answers about new samples, and about those of the fit, which need no views."""
        new = self.fit_rows < 0
        if new.all():
            return ask(self.data)
        answers = ask()[np.maximum(self.fit_rows, 0)]
        if new.any():
            answers[new] = ask(self.data[new])
        return answers
