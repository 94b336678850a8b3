"""What is known of the classes: given labels, class shares, and how far to trust these."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from viewmend.core.common.class_shares import balance_classes, class_weights, normalise_rows


@dataclass(frozen=True, eq=False)
class Labelling:
    """What is known of the classes.

    Attributes
    ----------
    Y : array (n_samples, n_classes)
        One-hot rows of labelled samples, zero rows of the others.
    prior : array (n_classes,)
        Class shares, as far as they are known.
    trust : float in [0, 1] or None
        In the prior; the rest is in the shares that the scores have by themselves. None leaves it
        to `settled`.
    """

    Y: np.ndarray
    prior: np.ndarray
    trust: float | None = 1.0

    def settled(self, P: np.ndarray) -> Labelling:
        """With the trust that the prior, as the class shares of the labels, deserves.

        Pearson's ``X^2`` compares the label counts with those expected from the scores. Its mean is
        ``c - 1`` for labels drawn at random, more where they are no fair sample, and less where
        every class was given its share of labels; the trust is ``1 / (1 + X^2 / (c - 1))``.
        """
        if self.trust is not None:
            return self
        # With no trust in the prior, these are the shares that the scores have by themselves.
        expected = replace(self, trust=0.0).shares(P)
        chi_squared = self.Y.sum() * float(np.sum((self.prior - expected) ** 2 / expected))
        return replace(self, trust=1 / (1 + chi_squared / (len(expected) - 1)))

    @property
    def settled_trust(self) -> float:
        """The trust, which must be settled."""
        if self.trust is None:
            msg = "trust must be a number here, got None; call settled first"
            raise ValueError(msg)
        return self.trust

    def shares(self, P: np.ndarray) -> np.ndarray:
        """Class shares to aim at, from the prior and from the classes of largest score."""
        scored = P[P.any(axis=1)]
        counts = np.bincount(np.argmax(scored, axis=1), minlength=len(self.prior))
        # A class that no score favours is rare, not absent: it has labels.
        counts = np.maximum(counts, 1)
        trust = self.settled_trust
        return trust * self.prior + (1 - trust) * counts / counts.sum()

    def classes(self, P: np.ndarray) -> np.ndarray:
        """Classes in the shares to aim at; given labels are kept, -1 where a row is zero."""
        weighted = P * class_weights(P, self.shares(P))
        predicted = np.where(P.any(axis=1), np.argmax(weighted, axis=1), -1)
        return np.where(self.Y.any(axis=1), np.argmax(self.Y, axis=1), predicted)

    def targets(self, P: np.ndarray) -> np.ndarray:
        """Soft classes in the shares to aim at, sharpened; labels where they are given."""
        # Squared, because ridge regression shrinks what it predicts: targets that are not
        # sharpened would drift towards the prior from round to round.
        soft = balance_classes(normalise_rows(P) ** 2, self.shares(P))
        return np.where(self.Y.any(axis=1, keepdims=True), self.Y, soft)
