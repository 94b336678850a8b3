"""Every method of the library by name: class, paper, grid, and what it needs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from viewmend.baselines.base import CompleteViewClassifier
from viewmend.exceptions import InvalidParameterError

__all__ = ["METHODS", "SIMPLER_FIRST", "Method", "get_method"]


@dataclass(frozen=True)
class Method:
    """One row of the registry.

    Attributes
    ----------
    name : str
        As in the paper's tables.
    path : str
        Module and class, imported on use.
    paper : str
        Short reference.
    extra : str or None
        Optional dependency to install, as in ``pip install '.[torch]'``.
    """

    name: str
    path: str
    paper: str
    extra: str | None = None

    @property
    def estimator(self) -> Any:
        """The class."""
        module, name = self.path.rsplit(".", 1)
        return getattr(importlib.import_module(module), name)

    @property
    def needs_imputation(self) -> bool:
        """Whether missing views are filled first (`viewmend.impute`)."""
        return issubclass(self.estimator, CompleteViewClassifier)

    @property
    def grid(self) -> Mapping[str, Sequence[Any]]:
        """Parameter values tried in the AGF-TI paper; empty where there is nothing to tune."""
        return self.estimator.grid

    @property
    def inductive(self) -> bool:
        """Whether it can classify new samples."""
        return hasattr(self.estimator, "predict")


def _baseline(name: str, path: str, paper: str, extra: str | None = None) -> Method:
    return Method(name, f"viewmend.baselines.{path}", paper, extra)


# Ours and the paper's own, then its baselines, then the rivals that it left out.
METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method("Mend", "viewmend.models.mend.MendClassifier", "this library"),
        Method("AGF-TI", "viewmend.models.agfti.AGFTIClassifier", "Jiang et al., NeurIPS 2025"),
        _baseline("SLIM", "slim.SLIMClassifier", "Yang et al., IJCAI 2018"),
        _baseline("AMSC", "amsc.AMSCClassifier", "Zhuge et al., IEEE T. Cybernetics 2023"),
        _baseline("AMMSS", "ammss.AMMSSClassifier", "Cai et al., ICCV 2013"),
        _baseline("AMGL", "amgl.AMGLClassifier", "Nie et al., IJCAI 2016"),
        _baseline("MLAN", "mlan.MLANClassifier", "Nie et al., AAAI 2017"),
        _baseline("AMUSE", "amuse.AMUSEClassifier", "Nie et al., TKDE 2020"),
        _baseline("FMSSL", "fmssl.FMSSLClassifier", "Zhang et al., TKDE 2022"),
        _baseline("FMSEL", "fmsel.FMSELClassifier", "Li et al., Neural Netw. 2021"),
        _baseline("CFMSC", "cfmsc.CFMSCClassifier", "Jiang et al., Inf. Fusion 2023"),
        _baseline("MVAR", "mvar.MVARClassifier", "Tao et al., TIP 2017"),
        _baseline("ERL-MVSC", "erl_mvsc.ERLMVSCClassifier", "Huang et al., TIP 2021"),
        _baseline("IMvGCN", "imvgcn.IMvGCNClassifier", "Wu et al., TMM 2023", "torch"),
        _baseline("GEGCN", "gegcn.GEGCNClassifier", "Lu et al., TMM 2024", "torch"),
        _baseline("union graph", "union_graph.UnionGraphClassifier", "Zhou et al., NIPS 2004"),
        _baseline("Poisson", "poisson.PoissonClassifier", "Calder et al., ICML 2020"),
        _baseline("Poisson-MBO", "poisson.PoissonMBOClassifier", "Calder et al., ICML 2020"),
        _baseline(
            "SNF", "similarity_fusion.SimilarityFusionClassifier", "Wang et al., Nat. Methods 2014"
        ),
        _baseline(
            "mean + spreading", "mean_imputed.MeanImputedLabelSpreading", "Zhou et al., NIPS 2004"
        ),
        _baseline("self-training", "self_training.SelfTrainingLogistic", "Yarowsky, ACL 1995"),
        _baseline("late fusion", "supervised.LateFusionClassifier", "Kittler et al., TPAMI 1998"),
        _baseline(
            "late trees", "supervised.LateTreesClassifier", "Geurts et al., Mach. Learn. 2006"
        ),
        _baseline("mean + logistic", "supervised.MeanImputedLogistic", "scikit-learn"),
        _baseline("mean + SVM", "supervised.MeanImputedSVM", "scikit-learn"),
        _baseline("boosting", "boosting.NaNBoostingClassifier", "Ke et al., NIPS 2017"),
    )
}

# By what there is to understand and to compute: one regression, one graph, an ensemble, then rounds
# over views, then networks. A comparison prefers the earlier of two that are equally good.
SIMPLER_FIRST: Sequence[str] = (
    "mean + logistic",
    "late fusion",
    "mean + SVM",
    "self-training",
    "union graph",
    "mean + spreading",
    "Poisson",
    "late trees",
    "boosting",
    "Poisson-MBO",
    "SNF",
    "MVAR",
    "AMGL",
    "MLAN",
    "AMUSE",
    "AMMSS",
    "FMSSL",
    "FMSEL",
    "AMSC",
    "SLIM",
    "CFMSC",
    "ERL-MVSC",
    "Mend",
    "AGF-TI",
    "IMvGCN",
    "GEGCN",
)


def get_method(name: str) -> Method:
    """Look up a method by name; an unknown name is an error that lists the known ones.

    Parameters
    ----------
    name : str
        Name of the method, a key of `METHODS`.
    """
    if name not in METHODS:
        msg = f"there is no method {name!r}; choose one of {', '.join(METHODS)}"
        raise InvalidParameterError(msg)
    return METHODS[name]
