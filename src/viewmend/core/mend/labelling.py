"""Given labels, class shares, and how far to trust the shares."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.common.class_shares import balance_classes, class_weights, normalise_rows
from viewmend.core.common.confident_learning import unexpected_noise
from viewmend.core.common.rows import Column, Rows, Sums
from viewmend.core.common.small_sums import beside, on_host, total
from viewmend.core.mend.share_trust import Trust, share_trust

# Class shares that are given are taken as they are.
IN_PRIOR: Trust = (0.0, 1.0, 0.0)


@dataclass(frozen=True, eq=False)
class Assignment:
    """Classes that come in given shares.

    Attributes
    ----------
    classes : column of array (n_rows,) of int
        Given labels are kept; -1 where a row has no score.
    shares : array (n_classes,)
        Those aimed at.
    weights : array (n_classes,)
        Factors of the scores that lead to these classes.
    """

    classes: Column
    shares: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True, eq=False)
class Labelling:
    """Given labels and class shares.

    Attributes
    ----------
    Y : column of array (n_rows, n_classes)
        One-hot rows of labelled samples, zero rows of the others.
    prior : array (n_classes,)
        Class shares, as far as they are known.
    trust : tuple of three float or None
        In equal shares, in the prior, and in the shares that the scores have by themselves; they
        sum to one. None leaves it to `settled`.
    noise : float in [0, 1) or None
        Share of the labels that are wrong. None leaves it to `doubted`.
    in_doubt : bool
        Whether rows of ``Y`` are no longer one-hot, but as sure as `doubted` makes them.
    """

    Y: Column
    prior: np.ndarray
    trust: Trust | None = IN_PRIOR
    noise: float | None = 0.0
    in_doubt: bool = False

    def settled(self, rows: Rows, P: Column) -> Labelling:
        """Set how far to trust the prior, which has the class shares of the labels.

        The scores ``P`` must not depend on the prior, because they decide how far it is trusted.
        """
        if self.trust is not None:
            return self
        n_labels = float(on_host(rows.sums(label_sums, self.Y, shared=None))["labels"])
        return replace(self, trust=share_trust(self.prior, n_labels, favoured_shares(rows, P)))

    def doubted(self, rows: Rows, evidence: Column) -> Labelling:
        """Replace labels by class shares from labels and ``evidence`` (n_rows, n_classes).

        The evidence of a sample does not depend on its label. It is the prior of the class, and the
        label has the likelihood `label_likelihood`.
        """
        if self.noise == 0:
            return self
        noise = self.noise
        if noise is None:
            noise = unexpected_noise(rows, self.Y, evidence)
        Y = rows.map(doubted_rows, self.Y, evidence, shared=noise)
        return replace(self, Y=Y, noise=noise, in_doubt=True)

    @property
    def settled_trust(self) -> Trust:
        """The trust, which must be settled."""
        if self.trust is None:
            msg = "trust must be three numbers here, got None; call settled first"
            raise ValueError(msg)
        return self.trust

    def shares(self, rows: Rows, P: Column) -> np.ndarray:
        """Class shares to use: mean of equal ones, the prior and those of the scores, by trust."""
        equal, known, scored = self.settled_trust
        favoured = favoured_shares(rows, P)
        return np.asarray(equal / len(favoured) + known * self.prior + scored * favoured)

    def assign(
        self, rows: Rows, P: Column, shares: np.ndarray, start: np.ndarray | None = None
    ) -> Assignment:
        """Classes in the ``shares`` to aim at, from scores ``P`` of arrays (n_rows, n_classes).

        ``start`` (n_classes,) are the weights of an assignment of similar scores.
        """
        weights = class_weights(rows, P, shares, start)
        return Assignment(rows.map(class_rows, P, self.Y, shared=weights), shares, weights)

    def targets(self, rows: Rows, P: Column, shares: np.ndarray) -> Column:
        """Soft classes in the ``shares``, sharpened, of float32; labels where they are given."""
        # Squared, because ridge regression shrinks what it predicts: targets that are not
        # sharpened would drift towards the prior from round to round.
        soft = balance_classes(rows, rows.map(squared_rows, P, shared=None), shares)
        return rows.map(target_rows, soft, self.Y, shared=None)


def favoured_shares(rows: Rows, P: Column) -> np.ndarray:
    """Shares (n_classes,) of the classes of largest score."""
    counts = on_host(rows.sums(favourite_sums, P, shared=None))["favourites"]
    # A class that no score favours is rare, not absent: it has labels.
    counts = np.maximum(counts, 1)
    return np.asarray(counts / counts.sum())


# ------------------------------------------------------------------ tasks


def label_sums(Y: Array, _shared: None) -> Sums:
    """Number of labels."""
    return {"labels": total(Y, axis=None)}


def favourite_sums(P: Array, _shared: None) -> Sums:
    """How many rows have their largest score in each class, (n_classes,)."""
    xp = array_namespace(P)
    return {"favourites": total(_one_hot(xp.argmax(P, axis=1), P) * _scored(P)[:, None])}


def class_rows(P: Array, Y: Array, weights: np.ndarray) -> Array:
    """Labels, or classes of largest weighted score, or -1: (n_rows,) of int."""
    xp = array_namespace(P)
    found = xp.argmax(P * beside(weights, P), axis=1)
    found = xp.where(_scored(P), found, xp.full_like(found, -1))
    return xp.where(_scored(Y), xp.argmax(Y, axis=1), found)


def squared_rows(P: Array, _shared: None) -> Array:
    """Squares of the shares of each row."""
    return normalise_rows(P) ** 2


def target_rows(soft: Array, Y: Array, _shared: None) -> Array:
    """One-hot rows where there is a label, ``soft`` where there is none."""
    xp = array_namespace(soft)
    # Labels are of the type of the views, shares of that of the scores.
    soft, Y = (xp.astype(each, xp.float32, copy=False) for each in (soft, Y))
    return xp.where(_scored(Y)[:, None], Y, soft)


def doubted_rows(Y: Array, evidence: Array, noise: float) -> Array:
    """Class shares of labelled rows by their label, wrong with this probability, and evidence.

    Other rows stay zero.
    """
    xp = array_namespace(Y)
    told = label_likelihood(Y, noise) * xp.astype(evidence, Y.dtype, copy=False)
    told = normalise_rows(told)
    # Where evidence and label rule each other out, the label remains.
    told = xp.where(_scored(told)[:, None], told, Y)
    return xp.where(_scored(Y)[:, None], told, xp.zeros_like(Y))


def label_likelihood(Y: Array, noise: float) -> Array:
    """Probability of the given labels, one-hot rows (n_rows, n_classes), if a class is right.

    A label is wrong with the probability of the noise, and then any other class.
    """
    return (1 - noise) * Y + noise / (Y.shape[1] - 1) * (1 - Y)


def _scored(P: Array) -> Array:
    """Rows that are not zero, (n_rows,) of bool."""
    return array_namespace(P).any(P != 0, axis=1)


def _one_hot(classes: Array, like: Array) -> Array:
    """Rows (n_rows, n_classes) of bool of classes (n_rows,); zero rows for -1."""
    xp = array_namespace(like)
    return classes[:, None] == xp.arange(like.shape[1], device=like.device)
