"""The picture of the ledger: how many claims of each kind have which verdict."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from viewmend.plot.style import INK, plot_style

from .claims import WRITTEN, Claim, ClaimTable
from .judging import VERDICTS
from .page import Judgements

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILE = "paper/ledger.png"
AGAIN = "Asked again, as written"
# From good to bad; what was not decided is grey.
COLOURS = dict(zip(VERDICTS, ("#44AA99", "#DDAA33", "#CC6677", "#999999", "#dddddd"), strict=True))


def draw_verdicts(table: ClaimTable, judgements: Judgements) -> Figure:
    """A bar for every part of the page, its claims by verdict, and one for those asked again."""
    from matplotlib.figure import Figure

    bars = {
        title: [judgements[one.id].verdict for one in table.claims if _is_in(title, one)]
        for title in (*table.parts, AGAIN)
    }
    with plot_style():
        figure = Figure(figsize=(8, 2.6), layout="constrained")
        axes = figure.subplots()
        for row, verdicts in enumerate(bars.values()):
            counts, start = Counter(verdicts), 0
            for name in VERDICTS:
                axes.barh(row, counts[name], left=start, color=COLOURS[name])
                if counts[name]:
                    middle = start + counts[name] / 2
                    axes.text(middle, row, counts[name], ha="center", va="center", color=INK)
                start += counts[name]
        axes.set_yticks(range(len(bars)), list(bars))
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.set_xlabel("claims")
        handles = [axes.bar(0, 0, color=COLOURS[name], label=name) for name in VERDICTS]
        figure.legend(
            handles=handles, loc="outside upper center", ncols=len(VERDICTS), frameon=False
        )
    return figure


def _is_in(title: str, claim: Claim) -> bool:
    again = claim.id.endswith(WRITTEN)
    return again if title == AGAIN else claim.part == title and not again
