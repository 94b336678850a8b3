"""``viewmend methods``: every method and what it can do."""

from __future__ import annotations

import math
from typing import Any

from rich.console import Console

from viewmend.baselines.registry import METHODS, Method
from viewmend.cli import options
from viewmend.cli.building import can_be_saved
from viewmend.cli.console import show_table, write_json

# Columns of a terminal that has room for the names of classes.
WIDE = 110
# Words for what a row says a method does.
ABILITIES = {"imputes": "imputes", "predicts": "predicts new", "saved": "saved"}


def methods(as_json: options.AsJson = False) -> None:
    """List every method: what it needs, what it can do, and its paper.

    Pass any of these names to `viewmend fit --method`. "imputes" means that missing views are
    filled before the fit, "predicts new" that new samples can be classified, "saved" that the model
    can be saved. "grid" is the number of settings in its grid: that of the AGF-TI paper, where it
    has one.
    """
    rows = [_row(method) for method in METHODS.values()]
    if as_json:
        write_json({"methods": rows})
        return
    console = Console()
    shown = [
        {
            "name": row["name"],
            "class": row["class"] if console.width >= WIDE else None,
            "can": ", ".join(word for key, word in ABILITIES.items() if row[key]),
            "grid": row["n_settings"],
            "extra": row["extra"],
            "paper": row["paper"],
        }
        for row in rows
    ]
    show_table(console, shown)


def _row(method: Method) -> dict[str, Any]:
    return {
        "name": method.name,
        "class": method.path.rsplit(".", 1)[1],
        "imputes": method.needs_imputation,
        "predicts": method.inductive,
        "saved": can_be_saved(method),
        "n_settings": math.prod(map(len, method.grid.values())) if method.grid else None,
        "extra": method.extra,
        "paper": method.paper,
    }
