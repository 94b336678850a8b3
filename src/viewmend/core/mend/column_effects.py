"""Which columns of a view its regression listens to: values swapped between samples.

A sample ``x`` gets the value that another sample ``x'`` has in one column, and its class scores
``f(x)`` become ``f(x) + change``. Half the mean square of the change is the variance of the scores
that is lost with the column (Sobol's total effect; Jansen 1999). If all columns are swapped, it is
the variance of the scores.

Swapping one column of a row moves it along one line in every representation. So the kernel at the
landmarks follows from products that are computed once, and nothing is approximated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, issparse

from viewmend.backend.threads import parallel_map
from viewmend.core.common.content_order import row_hashes
from viewmend.core.mend.components import SparseComponents, as_dense_rows, weighed
from viewmend.core.mend.induction import FittedView, ViewRegression
from viewmend.core.mend.kernel_features import mean_kernel
from viewmend.core.mend.representations import FIRST, FIRST_STEPS, Representation, signed_root

# Entries of a representation are cut here, so that squares of changes fit into float32.
FARTHEST = 1e6
# Most that an exponent of the kernel can grow by: beyond, a row is far from all others.
LARGEST = np.float32(80)
# Swaps of columns of a sparse view that are worked on at a time, about.
PIECE = 4096


@dataclass(frozen=True, eq=False)
class ColumnEffects:
    """What swapped columns do to the class scores of a view.

    Attributes
    ----------
    lost : array (n_columns, n_classes)
        Variance of the score of each class that is lost with each column.
    variances : array (n_classes,)
        Of the scores: what is lost with all columns.
    directions : array (n_columns, n_classes)
        Correlation of the change of the value with that of the score, between -1 and 1.
    n_samples : int
        That were swapped.
    """

    lost: np.ndarray
    variances: np.ndarray
    directions: np.ndarray
    n_samples: int


def column_effects(view: FittedView, X: np.ndarray | csr_array | None, most: int) -> ColumnEffects:
    """Effects of all columns on the regression of a view.

    Parameters
    ----------
    view : FittedView
        With a regression.
    X : array (n_rows, n_columns) or None
        Rows of the view to swap columns of; those of the fit if None.
    most : int
        Rows at most, chosen by their content; each gets values of the one chosen before it.
    """
    if view.components is not None:
        rows = view.components.rows if X is None else weighed(csr_array(X), view.components.weights)
        return _effects_through_components(view, view.components, *_swapped_rows(rows, most))
    rows = view.X if X is None else X
    dense = as_dense_rows(rows, None)
    return _effects_of_columns(view, *_swapped_rows(dense.astype(np.float64), most))


def _swapped_rows(rows: csr_array | np.ndarray, most: int) -> tuple[csr_array | np.ndarray, ...]:
    """Some rows, and for each the one whose values it gets."""
    # Values of a row in the order of their size: another order of the columns is no other content.
    content = rows if issparse(rows) else np.sort(rows, axis=1)
    chosen = np.argsort(row_hashes(content), kind="stable")[:most]
    return rows[chosen], rows[np.roll(chosen, 1)]


@dataclass(eq=False)
class _Sums:
    """Sums over swapped samples, by column and class."""

    squares: np.ndarray
    products: np.ndarray
    steps: np.ndarray

    def add(self, columns: np.ndarray, steps: np.ndarray, changes: np.ndarray) -> None:
        """Of swaps in ``columns`` (n,), which changed values by ``steps`` and scores by these."""
        np.add.at(self.squares, columns, changes**2)
        np.add.at(self.products, columns, steps[:, None] * changes)
        np.add.at(self.steps, columns, steps**2)

    def effects(self, base: np.ndarray, other: np.ndarray) -> ColumnEffects:
        """For scores (n_samples, n_classes) of the samples, and of those swapped with."""
        n_samples = max(len(base), 1)
        sizes = np.sqrt(self.steps[:, None] * self.squares)
        directions = np.divide(
            self.products, sizes, out=np.zeros_like(self.products), where=sizes > 0
        )
        variances = np.sum((base - other) ** 2, axis=0) / (2 * n_samples)
        lost = self.squares / (2 * n_samples)
        return ColumnEffects(lost, variances, np.clip(directions, -1, 1), len(base))


# ------------------------------------------------------------------ views that are dense


def _effects_of_columns(view: FittedView, X: np.ndarray, other: np.ndarray) -> ColumnEffects:
    regression = _regression(view)
    lines = [
        _Lines.of(each, view.mapped(name, regression.landmarks), regression.scales[name], X, other)
        for name, each in view.representations.items()
    ]
    # The kernel is a mean over representations.
    coefficients = regression.coefficients / len(lines)

    steps = other - X

    def swap(column: int) -> tuple[np.ndarray, np.ndarray]:
        moved = lines[0].change(column)
        for line in lines[1:]:
            moved += line.change(column)
        # Rounding moves no row whose value stays the same.
        moved[steps[:, column] == 0] = 0
        changes = moved.astype(np.float64) @ coefficients
        return np.sum(changes**2, axis=0), steps[:, column] @ changes

    squares, products = zip(*parallel_map(swap, range(X.shape[1])), strict=True)
    sums = _Sums(np.array(squares), np.array(products), np.sum(steps**2, axis=0))
    return sums.effects(_scores(view, X), _scores(view, other))


@dataclass(frozen=True, eq=False)
class _Lines:
    """Rows in one representation ``u((f(x) - centre) linear)``, and where swaps move them.

    Before the last step a row is ``a``, of which ``b = f(x) linear`` shrinks or grows where ``f``
    scales rows to unit length. With value ``j`` swapped it is ``a + shift b + step axes_j``, with
    ``axes_j`` along ``linear_j`` and of unit length, and ``sizes`` (n_columns,) the lengths of the
    latter. Products with the landmarks, (n_samples, n_landmarks), are in units of the exponent of
    the kernel, which is ``kernel`` before anything is swapped and can grow by ``most``.
    """

    representation: Representation
    axes: np.ndarray
    sizes: np.ndarray
    points: np.ndarray
    scale: float
    values: np.ndarray
    swapped: np.ndarray
    a: np.ndarray
    b: np.ndarray
    a_products: np.ndarray
    b_products: np.ndarray
    most: np.ndarray
    kernel: np.ndarray

    @classmethod
    def of(
        cls,
        representation: Representation,
        points: np.ndarray,
        scale: float,
        X: np.ndarray,
        other: np.ndarray,
    ) -> _Lines:
        """Of rows, those that they are swapped with, and landmarks (n_landmarks, n_components)."""
        linear = np.asarray(representation.linear, dtype=np.float64)
        linear = linear if linear.ndim == 2 else np.broadcast_to(linear, X.shape[1:])
        points = points.astype(np.float64)
        values, swapped = _first_steps(representation.first, X, other)
        b = _mapped(values, linear)
        a = _mapped(values - representation.centre, linear)
        a, b = (np.clip(rows, -FARTHEST, FARTHEST) for rows in (a, b))
        # Numbers of the view may be of any size, those that are multiplied below are not.
        sizes = np.linalg.norm(linear, axis=1) if linear.ndim == 2 else np.abs(linear)
        axes = (linear.T / np.where(sizes > 0, sizes, 1)).T
        a_products, b_products = (2 / scale * rows @ points.T for rows in (a, b))
        squares = np.sum(a * a, axis=1)
        factors = _factors(squares, representation.unit)
        lengths = factors**2 * squares
        start = factors[:, None] * a_products
        start -= (lengths[:, None] + np.sum(points * points, axis=1)) / scale
        start = np.minimum(start, 0).astype(np.float32)
        products = a_products.astype(np.float32), b_products.astype(np.float32)
        given = representation, axes, sizes, points, scale, values, swapped, a, b
        return cls(*given, *products, np.minimum(-start, LARGEST), np.exp(start))

    def change(self, column: int) -> np.ndarray:
        """Change (n_samples, n_landmarks) of the kernel, of float32."""
        shift, step = self._move(column)
        along, a_part, b_part, square = self._parts(column)
        before, b_squares, crossed, _ = self._squares
        after = before + shift**2 * b_squares + step**2 * square
        after += 2 * (shift * crossed + step * a_part + shift * step * b_part)
        after = np.maximum(after, 0)
        old, new = (_factors(squares, self.representation.unit) for squares in (before, after))
        lengths = (new**2 * after - old**2 * before) / self.scale
        along = (2 / self.scale * along).astype(np.float32)
        power = (new * step).astype(np.float32)[:, None] * along
        power += (new - old).astype(np.float32)[:, None] * self.a_products
        if shift.any():
            power += (new * shift).astype(np.float32)[:, None] * self.b_products
        power -= lengths.astype(np.float32)[:, None]
        # The kernel is at most one, whatever is rounded; where it vanishes it is left at that.
        np.minimum(power, self.most, out=power)
        np.expm1(power, out=power)
        power *= self.kernel
        return power

    @cached_property
    def _squares(self) -> tuple[np.ndarray, ...]:
        """Products (n_samples,) of ``a`` and ``b`` with themselves and each other; of ``f(x)``."""
        pairs = (self.a, self.a), (self.b, self.b), (self.a, self.b), (self.values, self.values)
        return tuple(np.sum(one * two, axis=1) for one, two in pairs)

    def _move(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """``shift`` and ``step`` (n_samples,) of rows whose value in a column is swapped."""
        value, swapped = self.values[:, column], self.swapped[:, column]
        step = np.clip((swapped - value) * self.sizes[column], -FARTHEST, FARTHEST)
        if not FIRST_STEPS[self.representation.first][1]:
            return np.zeros(len(step)), step
        # Of the others, rows of unit length have what this column leaves; rows of zeros nothing.
        rest = np.maximum(self._squares[3] - value**2, 0)
        factors = _factors(rest + swapped**2, unit=True)
        return factors - 1, factors * step

    def _parts(self, column: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Products of ``axes_j`` with the landmarks, with ``a``, with ``b``, with itself."""
        along = self.axes[column]
        if self.axes.ndim == 2:
            return self.points @ along, self.a @ along, self.b @ along, float(along @ along)
        a, b = self.a[:, column] * along, self.b[:, column] * along
        return self.points[:, column] * along, a, b, float(along**2)


def _first_steps(first: str, X: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``f(x)`` of rows, and the values of others on the scale that the rows have there."""
    rooted, scaled = FIRST_STEPS[first]
    values = FIRST[first](X)
    swapped = signed_root(other) if rooted else other
    if scaled:
        rows = signed_root(X) if rooted else X
        # Largest entries of one first: their squares neither overflow nor vanish.
        peaks = np.abs(rows).max(axis=1, keepdims=True)
        peaks = np.where(peaks > 0, peaks, 1)
        lengths = np.linalg.norm(rows / peaks, axis=1, keepdims=True)
        swapped = swapped / peaks / np.where(lengths > 0, lengths, 1)
    return values, swapped


def _mapped(rows: np.ndarray, linear: np.ndarray) -> np.ndarray:
    return np.asarray(rows @ linear if linear.ndim == 2 else rows * linear)


def _factors(squares: np.ndarray, unit: bool) -> np.ndarray:
    """What rows of these squared lengths (n_rows,) are multiplied by in a last or first step."""
    if not unit:
        return np.ones(len(squares))
    some = squares > 0
    return np.where(some, 1 / np.sqrt(np.where(some, squares, 1)), 0)


# ------------------------------------------------------------------ views that are sparse


def _effects_through_components(
    view: FittedView, components: SparseComponents, T: csr_array, other: csr_array
) -> ColumnEffects:
    """Of weighed rows of unit length, whose components stand for them.

    A column that neither of two rows has is the same after the swap, and is left out.
    """
    Z = (T @ components.rows.T).toarray() @ components.loadings
    base = _scores(view, Z - components.offset)
    T_columns = csr_array(T).tocsc()
    gaps = csr_array(other - T).tocsc()
    gaps.eliminate_zeros()
    nothing = np.zeros((T.shape[1], base.shape[1]))
    sums = _Sums(nothing, nothing.copy(), nothing[:, 0].copy())
    for part in _pieces(np.diff(gaps.indptr)):
        axes = components.rows[:, part].T.toarray() @ components.loadings
        some = gaps[:, part].tocoo()
        rows, columns, steps = some.row, some.col, some.data
        value = np.asarray(T_columns[:, part].toarray()[rows, columns])
        # Rows have unit length before the swap, and get it again.
        factors = _factors(np.maximum(1 - value**2 + (value + steps) ** 2, 0), unit=True)
        moved = factors[:, None] * (Z[rows] + steps[:, None] * axes[columns])
        changes = _scores(view, moved - components.offset) - base[rows]
        sums.add(part.start + columns, steps, changes)
    Z_other = (other @ components.rows.T).toarray() @ components.loadings
    return sums.effects(base, _scores(view, Z_other - components.offset))


def _pieces(counts: np.ndarray) -> Iterator[slice]:
    """Columns next to each other that have about `PIECE` swaps together."""
    start = 0
    for stop in range(1, len(counts) + 1):
        if stop == len(counts) or counts[start : stop + 1].sum() > PIECE:
            yield slice(start, stop)
            start = stop


# ------------------------------------------------------------------ scores


def _regression(view: FittedView) -> ViewRegression:
    assert view.regression is not None, "asked for where there are regressions"
    return view.regression


def _scores(view: FittedView, rows: np.ndarray) -> np.ndarray:
    """Class scores (n_rows, n_classes) of rows, or of their components."""
    regression = _regression(view)
    landmarks = {name: view.mapped(name, regression.landmarks) for name in view.representations}
    points = {name: each(rows) for name, each in view.representations.items()}
    kernel = mean_kernel(points, landmarks, regression.scales)
    return np.asarray(regression.predict(kernel), dtype=np.float64)
