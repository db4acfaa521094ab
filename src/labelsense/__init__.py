"""labelsense: multi-label prediction with very many labels, by compressed sensing.

    train     Y (n,d) sparse --compress: Z = Y A'--> Z (n,m) --regress on X (n,p)--> H
    predict   X --H--> measurements (n,m) --reconstruct(A)--> sparse scores (n,d) --> top k, labels

Three steps, three folders: ``labelsense.compress`` makes A, ``labelsense.regress`` learns H, ``labelsense.reconstruct``
gets the labels back. ``CompressedLabelClassifier`` puts them together.
"""

from labelsense import data, metrics, theory
from labelsense._version import __version__
from labelsense.advisor import Advice, advise
from labelsense.baselines import ECOCClassifier, OneVsAllClassifier, SECOCClassifier
from labelsense.compress import (
    BernoulliCompressor,
    CPLSTCompressor,
    DeVoreCompressor,
    GaussianCompressor,
    HadamardCompressor,
    PLSTCompressor,
    WhitenedCompressor,
)
from labelsense.diagnose import Diagnosis
from labelsense.errors import InputError, ModelFileError
from labelsense.estimator import CompressedLabelClassifier
from labelsense.features import LogTfidfTransformer
from labelsense.labels import TopK
from labelsense.model_file import load_model
from labelsense.reconstruct import (
    CorrelationDecoder,
    CoSaMPDecoder,
    FoBaDecoder,
    GroupOMPDecoder,
    LassoDecoder,
    MultistageLassoDecoder,
    OMPDecoder,
    ProjectionDecoder,
)
from labelsense.regress import (
    CosineKernel,
    KernelRidgeLearner,
    LandmarkRidgeLearner,
    PolynomialKernel,
    RBFKernel,
    RidgeLearner,
    SklearnLearner,
)

__all__ = [
    "Advice",
    "BernoulliCompressor",
    "CPLSTCompressor",
    "CoSaMPDecoder",
    "CompressedLabelClassifier",
    "CorrelationDecoder",
    "CosineKernel",
    "DeVoreCompressor",
    "Diagnosis",
    "ECOCClassifier",
    "FoBaDecoder",
    "GaussianCompressor",
    "GroupOMPDecoder",
    "HadamardCompressor",
    "InputError",
    "KernelRidgeLearner",
    "LandmarkRidgeLearner",
    "LassoDecoder",
    "LogTfidfTransformer",
    "ModelFileError",
    "MultistageLassoDecoder",
    "OMPDecoder",
    "OneVsAllClassifier",
    "PLSTCompressor",
    "PolynomialKernel",
    "ProjectionDecoder",
    "RBFKernel",
    "RidgeLearner",
    "SECOCClassifier",
    "SklearnLearner",
    "TopK",
    "WhitenedCompressor",
    "__version__",
    "advise",
    "data",
    "load_model",
    "metrics",
    "theory",
]
