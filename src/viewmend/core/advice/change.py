"""How far one more label would change the answers of all samples, in closed form on the graph.

Soft labels are linear in the labels: one of class ``c`` at sample ``i`` adds column ``i`` of
``K = (I - s S)^{-1}`` to column ``c`` of them. Graph and evidence are held as they are; the
regressions had their say in both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from viewmend.core.common.class_shares import normalise_rows


@dataclass(frozen=True, eq=False)
class Answers:
    """Scores ``F_jc / mass_c * evidence_jc``, of which rows scaled to sum one are the answers.

    ``F`` and ``evidence`` are (n_samples, n_classes), ``mass`` (n_classes,) the sums of the columns
    of ``F``, and of the soft labels outside the graph if there are samples. The evidence is ones
    where there is none. The ``prior`` (n_classes,) stands in for rows of ``F`` that no label
    reaches.
    """

    F: np.ndarray
    evidence: np.ndarray
    prior: np.ndarray
    mass: np.ndarray

    def added_mass(self, spread: np.ndarray) -> np.ndarray:
        """What soft labels ``spread`` (n_samples, n_columns) add to it, (n_classes, n_columns).

        Outside the graph as much as labels add there so far.
        """
        inside = self.F.sum(axis=0)
        growth = np.divide(self.mass, inside, out=np.ones_like(inside), where=inside > 0)
        return np.asarray(growth[:, None] * spread.sum(axis=0))

    def scores(self) -> np.ndarray:
        """Not yet scaled, (n_samples, n_classes); zero rows where no label reaches."""
        mass = self.mass
        return self.F * self.evidence * np.divide(1, mass, out=np.zeros_like(mass), where=mass > 0)

    def with_label(self, spread: np.ndarray, shares: np.ndarray) -> Answers:
        """Once a sample has the label that is expected of it.

        Of every class as much of what a label spreads (n_samples,) as the sample has of the
        ``shares`` (n_classes,).
        """
        column = spread[:, None]
        mass = self.mass + self.added_mass(column)[:, 0] * shares
        return replace(self, F=self.F + column * shares, mass=mass)

    def shares(self) -> np.ndarray:
        """The answers."""
        reached = self.F.any(axis=1, keepdims=True)
        scores = np.where(reached, self.scores(), self.prior * self.evidence)
        return np.asarray(normalise_rows(scores))


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
    scores, F = answers.scores(), answers.F
    totals, mass = scores.sum(axis=1), answers.mass[:, None] + answers.added_mass(spread)
    before = answers.shares()
    expected = np.zeros(spread.shape[1])
    for c in range(F.shape[1]):
        # One column of the scores changes, so all other shares of a row shrink alike: the change
        # of the answer is that of the share of this class.
        factors = answers.evidence[:, c, None] / mass[c]
        after = (F[:, c, None] + spread) * factors
        rest = (totals - scores[:, c])[:, None]
        # Where no label reaches, this one included, nothing changes.
        share = np.broadcast_to(before[:, c, None], after.shape).copy()
        np.divide(after, rest + after, out=share, where=rest + after > 0)
        expected += shares[:, c] * np.abs(share - before[:, c, None]).sum(axis=0)
    return expected
