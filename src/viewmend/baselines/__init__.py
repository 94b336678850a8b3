"""Methods to compare with, with the same interface as `viewmend.AGFTIClassifier`.

`viewmend.baselines.registry` lists them with their papers and grids.
"""

from viewmend.baselines.amgl import AMGLClassifier
from viewmend.baselines.ammss import AMMSSClassifier
from viewmend.baselines.amsc import AMSCClassifier
from viewmend.baselines.amuse import AMUSEClassifier
from viewmend.baselines.boosting import NaNBoostingClassifier
from viewmend.baselines.cfmsc import CFMSCClassifier
from viewmend.baselines.erl_mvsc import ERLMVSCClassifier
from viewmend.baselines.fmsel import FMSELClassifier
from viewmend.baselines.fmssl import FMSSLClassifier
from viewmend.baselines.gegcn import GEGCNClassifier
from viewmend.baselines.imvgcn import IMvGCNClassifier
from viewmend.baselines.mean_imputed import MeanImputedLabelSpreading
from viewmend.baselines.mlan import MLANClassifier
from viewmend.baselines.mvar import MVARClassifier
from viewmend.baselines.poisson import PoissonClassifier, PoissonMBOClassifier
from viewmend.baselines.self_training import SelfTrainingLogistic
from viewmend.baselines.similarity_fusion import SimilarityFusionClassifier
from viewmend.baselines.slim import SLIMClassifier
from viewmend.baselines.supervised import (
    LateFusionClassifier,
    LateTreesClassifier,
    MeanImputedLogistic,
    MeanImputedSVM,
)
from viewmend.baselines.union_graph import UnionGraphClassifier

__all__ = [
    "AMGLClassifier",
    "AMMSSClassifier",
    "AMSCClassifier",
    "AMUSEClassifier",
    "CFMSCClassifier",
    "ERLMVSCClassifier",
    "FMSELClassifier",
    "FMSSLClassifier",
    "GEGCNClassifier",
    "IMvGCNClassifier",
    "LateFusionClassifier",
    "LateTreesClassifier",
    "MLANClassifier",
    "MVARClassifier",
    "MeanImputedLabelSpreading",
    "MeanImputedLogistic",
    "MeanImputedSVM",
    "NaNBoostingClassifier",
    "PoissonClassifier",
    "PoissonMBOClassifier",
    "SLIMClassifier",
    "SelfTrainingLogistic",
    "SimilarityFusionClassifier",
    "UnionGraphClassifier",
]
