"""Step 1: the matrix A that compresses a label vector of length d to m measurements."""

from labelsense.compress.base import Compressor, DenseOperator, Operator, auto_measurements
from labelsense.compress.bernoulli import BernoulliCompressor
from labelsense.compress.conditional import CPLSTCompressor
from labelsense.compress.devore import DeVoreCompressor
from labelsense.compress.gaussian import GaussianCompressor
from labelsense.compress.hadamard import HadamardCompressor, HadamardOperator
from labelsense.compress.principal import PLSTCompressor
from labelsense.compress.whitened import WhitenedCompressor, WhitenedOperator

COMPRESSORS = {
    "hadamard": HadamardCompressor,
    "gaussian": GaussianCompressor,
    "bernoulli": BernoulliCompressor,
    "devore": DeVoreCompressor,
    "whitened": WhitenedCompressor,
    "plst": PLSTCompressor,
    "cplst": CPLSTCompressor,
}

__all__ = [
    "COMPRESSORS",
    "BernoulliCompressor",
    "CPLSTCompressor",
    "Compressor",
    "DeVoreCompressor",
    "DenseOperator",
    "GaussianCompressor",
    "HadamardCompressor",
    "HadamardOperator",
    "Operator",
    "PLSTCompressor",
    "WhitenedCompressor",
    "WhitenedOperator",
    "auto_measurements",
]
