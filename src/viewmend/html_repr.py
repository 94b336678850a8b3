"""What notebooks show of data and of fitted models: one card of HTML, without script.

Colours are those of the page or shades between, so that the cards suit light and dark ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from sklearn.utils import estimator_html_repr

# Classes named before the rest is only counted.
MOST_CLASSES = 8

STYLE = """
.viewmend-card {display: inline-block; font: 13px/1.5 system-ui, sans-serif; color: inherit;
  border: 1px solid rgba(128, 128, 128, .4); border-radius: 6px; padding: 8px 14px; margin: 4px 0}
.viewmend-card dl {display: grid; grid-template-columns: max-content 1fr; gap: 0 12px;
  margin: 4px 0}
.viewmend-card dt {opacity: .7}
.viewmend-card dd {margin: 0; max-width: 44em; overflow-wrap: anywhere}
.viewmend-card table {border-collapse: collapse; font: inherit; background: none;
  color: inherit; margin: 4px 0}
.viewmend-card tr {background: none}
.viewmend-card th, .viewmend-card td {padding: 2px 18px 2px 0; text-align: left; color: inherit}
.viewmend-card td {border-top: 1px solid rgba(128, 128, 128, .25)}
.viewmend-card th {font-weight: normal; opacity: .7}
.viewmend-card .track {display: inline-block; width: 90px; height: 8px; border-radius: 4px;
  background: rgba(128, 128, 128, .25); margin-right: 8px; overflow: hidden}
.viewmend-card .fill {display: block; height: 100%; background: #3d8fd1}
"""


def card(title: str, facts: Mapping[str, object], columns: Mapping[str, Sequence[object]]) -> str:
    """A title, facts by name unless they are None, and a table with one row per view.

    Columns of cells are given by their headings; arrays are shares, and become bars.
    """
    told = "".join(
        f"<dt>{_text(name)}</dt><dd>{_text(fact)}</dd>"
        for name, fact in facts.items()
        if fact is not None
    )
    heads = "".join(f'<th scope="col">{_text(head)}</th>' for head in columns)
    cells = [map(_cell(column), column) for column in columns.values()]
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    return (
        f'<div class="viewmend-card"><style>{STYLE}</style><strong>{_text(title)}</strong>'
        f"<dl>{told}</dl><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def share_bar(share: float) -> str:
    """A bar filled to ``share``, from 0 to 1, and the share in percent."""
    percent = f"{share:.1%}"
    return f'<span class="track"><span class="fill" style="width:{percent}"></span></span>{percent}'


def _cell(column: Sequence[object]) -> Any:
    shown = share_bar if isinstance(column, np.ndarray) else _text
    return lambda value: f"<td>{shown(value)}</td>"


def _text(value: object) -> str:
    return escape(str(value))


class HTMLReprMixin:
    """In notebooks, a card of the fitted views above scikit-learn's diagram of the parameters.

    Subclasses have ``view_names_`` and ``view_n_features_`` once they are fitted, and
    ``_coverage`` where they know it.
    """

    def _repr_html_inner(self) -> str:
        return model_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = model_html(self)
        return bundle


def model_html(model: object) -> str:
    """Card of a fitted estimator and its diagram; the diagram alone before ``fit``."""
    diagram = str(estimator_html_repr(model))
    if not hasattr(model, "view_names_"):
        return diagram
    # A search shows what it has chosen.
    fitted: Any = getattr(model, "best_estimator_", model)
    weights = getattr(fitted, "view_weights_", None)
    columns = {
        "view": fitted.view_names_,
        "columns": fitted.view_n_features_,
        "observed in fit": getattr(fitted, "_coverage", None),
        "weight": None if weights is None else np.asarray(weights / np.sum(weights)),
    }
    known = {head: column for head, column in columns.items() if column is not None}
    return card(type(model).__name__, _facts(model, fitted), known) + diagram


def _facts(model: Any, fitted: Any) -> dict[str, object]:
    classes = getattr(fitted, "classes_", None)
    samples = getattr(fitted, "transduction_", None)
    unreachable = np.sum(getattr(fitted, "unreachable_", False))
    return {
        "samples": None if samples is None else len(samples),
        "classes": None if classes is None else _class_names(classes),
        "status": getattr(fitted, "status_", None),
        "iterations": getattr(fitted, "n_iter_", None),
        "accuracy": getattr(fitted, "estimated_accuracy_", None),
        "unreachable": f"{unreachable} samples" if unreachable else None,
        "chosen": getattr(model, "best_params_", None),
    }


def _class_names(classes: np.ndarray) -> str:
    shown = ", ".join(map(str, classes[:MOST_CLASSES]))
    return f"{len(classes)}: {shown}" + (", ..." if len(classes) > MOST_CLASSES else "")
