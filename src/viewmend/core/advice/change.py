"""How far one more label would change the answers of all samples, in closed form on the graph.

Soft labels are linear in the labels: one of class ``c`` at sample ``i`` adds column ``i`` of
``K = (I - s S)^{-1}`` to column ``c`` of them. Graph and evidence are held as they are; the
regressions had their say in both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from viewmend.core.common.class_shares import normalise_rows


@dataclass(frozen=True, eq=False)
class Answers:
    """Scores ``F_jc / mass_c * evidence_jc``, of which rows scaled to sum one are the answers.

    ``F`` and ``evidence`` are (n_samples, n_classes), ``mass`` (n_classes,) the sums of the columns
    of ``F``. The evidence is ones where there is none.
    """

    F: np.ndarray
    evidence: np.ndarray

    @property
    def mass(self) -> np.ndarray:
        """Sums of the columns of the soft labels."""
        return np.asarray(self.F.sum(axis=0))

    def scores(self) -> np.ndarray:
        """Not yet scaled, (n_samples, n_classes)."""
        mass = self.mass
        return self.F * self.evidence * np.divide(1, mass, out=np.zeros_like(mass), where=mass > 0)

    def shares(self) -> np.ndarray:
        """The answers; zero rows where no label reaches."""
        return np.asarray(normalise_rows(self.scores()))


def expected_changes(answers: Answers, spread: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Expected sum over all samples of the change of their answers, (n_candidates,).

    The change of one answer is half the sum of the absolute changes of its class shares.

    Parameters
    ----------
    answers : Answers
    spread : array (n_samples, n_candidates)
        Soft labels that a label of each candidate would add.
    shares : array (n_candidates, n_classes)
        How probable the classes of a candidate are.
    """
    scores, F, mass = answers.scores(), answers.F, answers.mass
    totals = scores.sum(axis=1)
    before = normalise_rows(scores)
    expected = np.zeros(spread.shape[1])
    for c in range(F.shape[1]):
        # One column of the scores changes, so all other shares of a row shrink alike: the change
        # of the answer is that of the share of this class.
        factors = answers.evidence[:, c, None] / (mass[c] + spread.sum(axis=0))
        after = (F[:, c, None] + spread) * factors
        rest = (totals - scores[:, c])[:, None]
        share = np.divide(after, rest + after, out=np.zeros_like(after), where=rest + after > 0)
        expected += shares[:, c] * np.abs(share - before[:, c, None]).sum(axis=0)
    return expected
