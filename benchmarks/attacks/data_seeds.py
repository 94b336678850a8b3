"""Small files of known content in every format that data is read from."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

N_SAMPLES = 12
# Nothing else holds this number: a view that does was read from a file that nobody named.
SECRET = 424242.125
SECRET_FILES = ("secret.bin", "secret.h5")


def views() -> dict[str, np.ndarray]:
    """A view of reals and one of small whole numbers, mostly zero, no row of it all zero."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 5, (N_SAMPLES, 7)) * (rng.random((N_SAMPLES, 7)) < 0.4)
    counts[:, 0] = np.arange(N_SAMPLES) + 1
    return {"photo": rng.normal(size=(N_SAMPLES, 3)), "count": counts.astype(np.float64)}


def labels() -> np.ndarray:
    return np.arange(N_SAMPLES) % 3


def write_seeds(folder: Path) -> None:
    """One file or folder per row of `SEEDS`, and what nobody should read."""
    with warnings.catch_warnings():
        # What the libraries plan to change.
        warnings.simplefilter("ignore")
        for name, write in SEEDS.items():
            write(folder / name)
    np.full(N_SAMPLES * 7, SECRET).tofile(folder / "secret.bin")
    _write_secret_hdf5(folder / "secret.h5")


def _frames() -> dict[str, Any]:
    import pandas as pd

    ids = pd.Index([f"s{i}" for i in range(N_SAMPLES)], name="id")
    return {name: pd.DataFrame(view, index=ids).add_prefix("c") for name, view in views().items()}


def _one_frame() -> Any:
    return _frames()["photo"].assign(label=labels())


def _write_folder(path: Path) -> None:
    path.mkdir()
    frames = _frames()
    frames["photo"].to_csv(path / "photo.csv")
    frames["count"].reset_index().to_parquet(path / "count.parquet")
    _one_frame()[["label"]].to_csv(path / "labels.csv")


def _write_npz(path: Path) -> None:
    np.savez(path, y=labels(), **views())


def _write_packed_npz(path: Path) -> None:
    np.savez_compressed(path, y=labels(), **views())


def _cells() -> np.ndarray:
    cells = np.empty((1, 2), dtype=object)
    cells[0, 0], cells[0, 1] = views()["photo"], scipy.sparse.csc_array(views()["count"])
    return cells


def _write_mat(path: Path) -> None:
    scipy.io.savemat(path, {"X": _cells(), "gnd": labels()[:, None] + 1.0})


def _write_packed_mat(path: Path) -> None:
    content = {"X": _cells(), "gnd": labels()[:, None] + 1.0}
    scipy.io.savemat(path, content, do_compression=True)


def _write_new_mat(path: Path) -> None:
    import h5py

    sparse = scipy.sparse.csc_array(views()["count"])
    with h5py.File(path, "w", userblock_size=512) as file:
        file["#refs#/a"] = views()["photo"].T
        group = file.create_group("#refs#/b")
        group.attrs["MATLAB_sparse"] = np.uint64(N_SAMPLES)
        group["data"], group["ir"] = sparse.data, sparse.indices.astype(np.uint64)
        group["jc"] = sparse.indptr.astype(np.uint64)
        references = [[file["#refs#/a"].ref], [file["#refs#/b"].ref]]
        file.create_dataset("X", data=np.array(references, dtype=object), dtype=h5py.ref_dtype)
        file["gnd"] = labels()[None].astype(np.float64)


def _annotated(X: Any) -> Any:
    import anndata
    import pandas as pd

    obs = pd.DataFrame(
        {"label": pd.Categorical.from_codes(labels(), ["a", "b", "c"])},
        index=[f"s{i}" for i in range(N_SAMPLES)],
    )
    var = pd.DataFrame(index=[f"c{j}" for j in range(X.shape[1])])
    return anndata.AnnData(X, obs=obs, var=var)


def _write_h5ad(path: Path) -> None:
    adata = _annotated(views()["photo"])
    adata.obsm["photo"] = views()["photo"]
    adata.obsm["count"] = scipy.sparse.csr_matrix(views()["count"])
    adata.write_h5ad(path)


def _write_packed_h5ad(path: Path) -> None:
    adata = _annotated(scipy.sparse.csr_matrix(views()["count"]))
    adata.write_h5ad(path, compression="gzip")


def _write_h5mu(path: Path) -> None:
    import mudata

    sparse = _annotated(scipy.sparse.csr_matrix(views()["count"]))
    mdata = mudata.MuData({"photo": _annotated(views()["photo"]), "count": sparse})
    mdata.update()
    mdata.obs["label"] = mdata["photo"].obs["label"]
    mdata.write_h5mu(path)


def _write_secret_hdf5(path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file["photo"] = np.full((N_SAMPLES, 3), SECRET)
        file["turned"] = np.full((3, N_SAMPLES), SECRET)
        file["row"] = np.full(3, SECRET)


SEEDS: Mapping[str, Callable[[Path], None]] = {
    "table.csv": lambda path: _one_frame().to_csv(path),
    "table.tsv": lambda path: _one_frame().to_csv(path, sep="\t"),
    "table.parquet": lambda path: _one_frame().reset_index().to_parquet(path),
    "tables": _write_folder,
    "plain.npz": _write_npz,
    "packed.npz": _write_packed_npz,
    "plain.mat": _write_mat,
    "packed.mat": _write_packed_mat,
    "new.mat": _write_new_mat,
    "plain.h5ad": _write_h5ad,
    "packed.h5ad": _write_packed_h5ad,
    "two.h5mu": _write_h5mu,
}
