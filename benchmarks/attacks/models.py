"""Model files that were damaged or forged: refused, or as good as whole ones.

Half of the cases are accidents of bytes: a model that loads after one must predict the same bits.
The others are forgeries under valid checksums and a valid digest: they are refused, or they are
another model, which predicts finite probabilities. Some forgeries plant pickles, which must never
run.
"""

from __future__ import annotations

import copy
import io
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from attacks.forging import RAN, Rng, damaged, forged
from attacks.outcomes import Outcome, Verdict, judged
from viewmend import AGFTIClassifier, LabelSearchCV, MendClassifier, load, save
from viewmend.data.categories import Categories
from viewmend.data.origin import Origin
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import VersionWarning

MODELS: dict[str, Any] = {
    "mend": MendClassifier(n_rounds=2, n_landmarks=9, edge_power=1.0),
    "graphs alone": MendClassifier(
        n_rounds=0, n_landmarks=9, representations=("unit", "hellinger")
    ),
    "single": MendClassifier(n_rounds=1, n_landmarks=9, dtype="float32"),
    "agfti": AGFTIClassifier(random_state=0, tol=1e6),
    "paper": AGFTIClassifier.from_paper(
        n_anchors=8, tol=1e6, random_state=np.random.default_rng(3)
    ),
    "search": LabelSearchCV(
        MendClassifier(n_rounds=0, n_landmarks=9), {"spreading": [0.5, 0.9]}, cv=2
    ),
}


@dataclass(frozen=True)
class ModelFiles:
    """Accidents and forgeries of six small models."""

    name: str = "models"
    n_cases: int = 10_000
    time_limit: float = 60.0

    def prepare(self, folder: Path) -> None:
        """Fit the models and keep what they predict of new samples."""
        task, new = _samples()
        for name, model in MODELS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = copy.deepcopy(model).fit(task.data, NAMES[task.y])
            if name == "mend":
                fitted.fitted_state_ = _with_origin(fitted.fitted_state_)
            save(fitted, folder / f"{name}.vm")
            np.save(folder / f"{name}.npy", fitted.predict_proba(new))

    def attempt(self, folder: Path, rng: Rng) -> Outcome:
        name = list(MODELS)[rng.integers(len(MODELS))]
        data = (folder / f"{name}.vm").read_bytes()
        expected = np.load(folder / f"{name}.npy")
        RAN.clear()
        if rng.integers(2):
            other = (folder / f"{list(MODELS)[rng.integers(len(MODELS))]}.vm").read_bytes()
            kind, changed = damaged(data, other, rng)
            outcome = judged(lambda: _same(changed, expected))
        else:
            kind, changed = forged(data, rng)
            outcome = judged(lambda: _usable(changed, expected))
        if RAN:
            return Outcome(Verdict.CRASH, f"{kind} of {name}: code from the file ran")
        return Outcome(outcome.verdict, f"{kind} of {name}: {outcome.detail}")


# Of the codes 0, 1 and 2, and of -1.
NAMES = np.array(["blue", "green", "red", None], dtype=object)


def _samples() -> tuple[Any, Any]:
    """A task to fit, and new samples, some with one view only."""
    blobs = make_multiview_blobs(36, n_features=(3, 2), noise=2.0, random_state=0)
    task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.25, random_state=0)
    others = make_multiview_blobs(12, n_features=(3, 2), noise=4.0, random_state=1)
    codes = np.arange(12) % 3
    new = hide(others.views, codes, missing_rate=0.5, label_rate=0.5, random_state=1).data
    return task, new


_NEW = _samples()[1]


def _with_origin(state: Any) -> Any:
    columns = {name: np.array([f"{name}{i}" for i in range(n)]) for name, n in _LAYOUT.items()}
    # The last two columns of the first view came from one of categories.
    view = next(iter(_LAYOUT))
    kind = Categories(np.array(["red"]), rare=True)
    columns[view] = np.array([*columns[view][:-2], *kind.names("kind")])
    samples = np.arange(36, dtype=np.uint64)
    origin = Origin("id", columns, {view: {"kind": kind}}, samples, samples.astype(str))
    return replace(state, origin=origin)


_LAYOUT = dict(zip(_NEW.names, _NEW.n_features, strict=True))


def _loaded(data: bytes) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VersionWarning)
        return load(io.BytesIO(data))


def _same(data: bytes, expected: np.ndarray) -> Outcome | None:
    """Nothing if the file predicts the same bits."""
    if _loaded(data).predict_proba(_NEW).tobytes() == expected.tobytes():
        return None
    return Outcome(Verdict.SILENT, "predicts otherwise")


def _usable(data: bytes, expected: np.ndarray) -> Outcome | None:
    """Nothing if the file predicts probabilities of as many samples."""
    model = _loaded(data)
    shares, labels = model.predict_proba(_NEW), model.predict(_NEW)
    model.decide(_NEW)
    repr(model.calibration_)
    sums = shares.sum(axis=1)
    whole = len(shares) == len(labels) == len(expected) and np.isfinite(shares).all()
    if whole and (shares >= 0).all() and np.allclose(sums, 1, atol=1e-5):
        return None
    return Outcome(Verdict.SILENT, f"probabilities {shares[:2]}, sums {sums[:4]}")
