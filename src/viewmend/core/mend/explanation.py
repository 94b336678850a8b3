"""Which labels, and which views, a score of Mend comes from.

Soft labels are linear in the given labels, and the logarithm of the evidence is a sum over views.
So both can be split into parts exactly.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.sparse import csr_array, diags_array

from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.common.class_shares import normalise_rows
from viewmend.core.common.held_out import unit_columns
from viewmend.core.graphs.graph import GraphUnion
from viewmend.core.graphs.spreading import spread_labels
from viewmend.core.mend.evidence import SHARPNESS, TEMPERATURE
from viewmend.core.mend.joining import JoinedRows, inverse_roots
from viewmend.core.mend.view_gaussian import ViewGaussian, observed_patterns


def spreading_influence(
    W: csr_array, spreading: float, rows: np.ndarray, labelled: np.ndarray
) -> np.ndarray:
    """Weights (n_rows, n_labelled) of the labels in rows of the ``F`` of `spread_labels`."""
    # The system is symmetric: one column per explained row, instead of one per label.
    return spread_labels(W, unit_columns(rows, W.shape[0]), spreading)[labelled].T


def influence_on_new(
    joined: JoinedRows, W: csr_array, degrees: np.ndarray, spreading: float, labelled: np.ndarray
) -> np.ndarray:
    """Weights (n_rows, n_labelled) of the labels in what `spread_to` gives to joined rows.

    ``W`` (n_samples, n_samples) is the graph, ``degrees`` (n_samples,) those of its samples, and
    ``labelled`` are some of these.
    """
    edges = joined_edges(joined, W.shape[0])
    own = inverse_roots(np.asarray(edges.sum(axis=1)).ravel())
    # What a row takes from each sample; spreading is symmetric, so that it can be turned around.
    taken = (diags_array(own) @ edges @ diags_array(inverse_roots(degrees))).toarray()
    return spread_labels(W, taken.T, spreading)[labelled].T


def joined_edges(joined: JoinedRows, n_samples: int) -> csr_array:
    """Weights (n_rows, n_samples) of the edges of joined rows, summed over the graphs."""
    total = csr_array((joined.n_rows, n_samples))
    for edges, rows, scale in zip(joined.edges, joined.rows, joined.scales, strict=True):
        heads = np.repeat(rows, edges.indices.shape[1])
        places = heads, edges.indices.ravel()
        weights = scale * edges.weights.ravel().astype(np.float64)
        total = total + csr_array((weights, places), shape=total.shape)
    return total


def new_view_shares(joined: JoinedRows, n_views: int) -> np.ndarray:
    """Share (n_rows, n_views) of each view in the edges of joined rows, others being consensus.

    As in `view_degrees`, the graphs of a view stand next to each other; that of the consensus, if
    there is one, is the last.
    """
    degrees = np.zeros((len(joined.edges), joined.n_rows))
    for g, (edges, rows) in enumerate(zip(joined.edges, joined.rows, strict=True)):
        degrees[g, rows] = joined.scales[g] * edges.weights.sum(axis=1)
    n_maps = len(degrees) // n_views
    by_view = degrees[: n_views * n_maps].reshape(n_views, n_maps, -1).sum(axis=1).T
    total = degrees.sum(axis=0)[:, None]
    return np.divide(by_view, total, out=np.zeros_like(by_view), where=total > 0)


def view_degrees(graphs: GraphUnion, weights: np.ndarray, n_views: int) -> Array:
    """Weight (n_samples, n_views) of the edges that each view gives to the samples.

    There is one graph with a weight per view and representation, those of a view next to each
    other.
    """
    degrees = graphs.degrees()
    xp = array_namespace(degrees)
    scaled = degrees * xp.asarray(weights, dtype=degrees.dtype, device=degrees.device)[:, None]
    return xp.sum(xp.reshape(scaled, (n_views, -1, graphs.n_samples)), axis=1).T


def evidence_parts(
    Z: np.ndarray, observed: np.ndarray, weights: np.ndarray, gaussian: ViewGaussian
) -> np.ndarray:
    """What each view, and last the prior, adds to the log of `evidence_shares`.

    Parameters and shapes as there. Sums over the second axis of the result (n_samples, n_views + 1,
    n_classes) are the logarithms, up to a constant per sample.
    """
    shares = normalise_rows(observed * weights)
    views = SHARPNESS * shares[:, :, None] * Z + gaussian_parts(gaussian, Z, observed) / TEMPERATURE
    prior = np.tile(np.log(gaussian.prior) / TEMPERATURE, (len(Z), 1, 1))
    return np.concatenate([views, prior], axis=1) / 2


def gaussian_parts(gaussian: ViewGaussian, Z: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """What each view adds to `log_posterior`, its prior aside; zero where a view is missing.

    For class ``c`` of mean ``m_c`` that is ``<z_v - m_cv / 2, (C^{-1} m_c)_v>``; views that repeat
    each other share their part, by the inverse of their covariance ``C``. The result has the
    shape of ``Z``.
    """
    n_classes = Z.shape[2]
    parts = np.zeros(Z.shape)
    for views, rows in observed_patterns(observed):
        columns = np.flatnonzero(np.repeat(views, n_classes))
        values, vectors = scipy.linalg.eigh(gaussian.covariance[np.ix_(columns, columns)])
        means = gaussian.means[:, columns]
        # C^{-1} m_c with the same floor under the eigenvalues as in `log_posterior`.
        directions = (means @ vectors / np.maximum(values, gaussian.floor)) @ vectors.T
        shape = (n_classes, views.sum(), n_classes)
        means, directions = means.reshape(shape), directions.reshape(shape)
        offsets = np.einsum("cvk,cvk->vc", means, directions) / 2
        seen = np.ix_(rows, np.flatnonzero(views))
        parts[seen] = np.einsum("ivk,cvk->ivc", Z[seen], directions) - offsets
    return parts
