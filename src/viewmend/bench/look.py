"""How records are looked at: by which metric, for which method, beside which printed values."""

from __future__ import annotations

from dataclasses import dataclass

from viewmend.bench.paper_values import PaperTables

__all__ = ["Look"]


@dataclass(frozen=True)
class Look:
    """How records are looked at.

    Attributes
    ----------
    metric : str
        Row of `viewmend.bench.summaries.METRICS`.
    subject : str
        Method that the others are tested against.
    paper : PaperTables, optional
        The paper's printed values, drawn as ghosts beside ours.
    """

    metric: str = "ACC"
    subject: str = "AGF-TI"
    paper: PaperTables | None = None
