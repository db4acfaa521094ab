"""Step 2: the regressions from features to measurements."""

from labelsense.regress.adapter import SklearnLearner
from labelsense.regress.base import Learner
from labelsense.regress.kernel_ridge import KernelRidgeLearner
from labelsense.regress.kernels import CosineKernel, Kernel, PolynomialKernel, RBFKernel
from labelsense.regress.landmarks import LandmarkRidgeLearner
from labelsense.regress.ridge import RidgeLearner

LEARNERS = {"ridge": RidgeLearner, "kernel_ridge": KernelRidgeLearner}

__all__ = [
    "LEARNERS",
    "CosineKernel",
    "Kernel",
    "KernelRidgeLearner",
    "LandmarkRidgeLearner",
    "Learner",
    "PolynomialKernel",
    "RBFKernel",
    "RidgeLearner",
    "SklearnLearner",
]
